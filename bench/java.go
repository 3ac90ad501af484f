// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// A jvm is the process of the peers in Java: see java/src. It speaks the line protocol of
// internal/test/interop/javapeer.
type jvm struct {
	process  *proc.Process
	in       io.Writer
	lines    chan string  // its answers; closed when the process is gone
	complain bytes.Buffer // what it wrote to stderr, to be read when lines is closed
	last     int
}

// startJVM builds the program with Maven and starts it. The compiler is not held back, as it is in
// tests: what is measured runs warm.
func startJVM(ctx context.Context, all *ends) *jvm {
	mvn := must(exec.LookPath("mvn"))
	build := exec.CommandContext(ctx, mvn, "-B", "-q", "-ntp", "-Dstyle.color=never", "package")
	build.Dir = "java"
	if said, err := build.CombinedOutput(); err != nil {
		check(fmt.Errorf("mvn package in bench/java: %w: %s", err, lastLine(said)))
	}
	cmd := exec.Command("java", "-Xmx1g", "-XX:+UseParallelGC", "-jar", filepath.Join("java", "target", "peer.jar"))
	j := &jvm{lines: make(chan string)}
	cmd.Stderr = &j.complain
	j.in = must(cmd.StdinPipe()) // closed when the process has ended
	out, theirs, err := os.Pipe()
	check(err)
	cmd.Stdout = theirs
	j.process, err = proc.Start(cmd)
	_ = theirs.Close() // the process has its own
	check(err)
	go j.listen(out) // ends with the process, and with lines, which the end below reads
	all.after(func(context.Context) error {
		_ = j.process.Kill() // fails only if it has ended
		for range j.lines {
			continue
		}
		return nil
	})
	must(j.answer(ctx, "ready"))
	return j
}

func lastLine(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return lines[len(lines)-1]
}

// listen passes on what the process says.
func (j *jvm) listen(out io.ReadCloser) {
	for in := bufio.NewReader(out); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		j.lines <- strings.TrimSpace(line)
	}
	_ = out.Close() // nothing more comes
	<-j.process.Ended()
	close(j.lines)
}

// answer waits for the answer to a command. Those to earlier ones, which nobody waited for, do not count.
func (j *jvm) answer(ctx context.Context, id string) (string, error) {
	for {
		select {
		case line, open := <-j.lines:
			if !open {
				return "", fmt.Errorf("the JVM has ended: %s", lastLine(j.complain.Bytes()))
			}
			if to, text, _ := strings.Cut(line, " "); to == id {
				return text, nil
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (j *jvm) next() string {
	j.last++
	return strconv.Itoa(j.last)
}

// say sends a command to a handle, which has one thread, and waits for its answer.
func (j *jvm) say(ctx context.Context, handle, verb string, arguments ...string) (string, error) {
	id := j.next()
	words := []string{id, handle, "main", verb}
	for _, a := range arguments {
		words = append(words, url.QueryEscape(a))
	}
	if _, err := fmt.Fprintln(j.in, strings.Join(words, " ")); err != nil {
		return "", fmt.Errorf("the JVM does not listen: %w", err)
	}
	text, err := j.answer(ctx, id)
	if err != nil {
		return "", err
	}
	return parseAnswer(text)
}

func parseAnswer(text string) (string, error) {
	verdict, rest, _ := strings.Cut(text, " ")
	value, err := url.QueryUnescape(rest)
	if err != nil {
		return "", fmt.Errorf("the JVM answers %q: %w", text, err)
	}
	if verdict != "ok" {
		return "", errors.New(value)
	}
	return value, nil
}

// A javaPeer is a peer in the JVM.
type javaPeer struct {
	jvm    *jvm
	handle string
	key    string
}

// javaPeer opens the recipe of the stage's peer, by clients that connect to the world's servers.
func (s *stage) javaPeer(ctx context.Context) *javaPeer { return s.javaBeside(ctx, s.redis, "") }

// javaBeside opens another one, for a key of its own, with another address of Redis.
func (s *stage) javaBeside(ctx context.Context, redis, suffix string) *javaPeer {
	p := &javaPeer{s.java, "peer" + s.java.next(), s.key + suffix}
	must(s.java.say(ctx, p.handle, "open", redis, s.zooKeeper, s.peer.recipe))
	s.after(func(ctx context.Context) error {
		_, err := p.jvm.say(ctx, p.handle, "close")
		return err
	})
	return p
}

// ask has the peer do something, and returns the numbers that it answers.
func (p *javaPeer) ask(ctx context.Context, verb string, arguments ...int) []float64 {
	words := []string{p.key}
	for _, a := range arguments {
		words = append(words, strconv.Itoa(a))
	}
	return parseNumbers(must(p.jvm.say(ctx, p.handle, verb, words...)))
}

func parseNumbers(text string) (numbers []float64) {
	for word := range strings.FieldsSeq(text) {
		numbers = append(numbers, must(strconv.ParseFloat(word, 64)))
	}
	return numbers
}

// javaVersions names the JVM, the libraries in it, and ZooKeeper, as far as they are there.
func javaVersions(ctx context.Context, w world) (versions []string) {
	if w.java != nil {
		said, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
		if first, _, _ := strings.Cut(string(said), "\n"); err == nil {
			versions = append(versions, first)
		}
		for _, name := range []string{"redisson", "curator-recipes"} {
			if jars, _ := filepath.Glob(filepath.Join("java", "target", "lib", name+"-*.jar")); len(jars) > 0 { // the pattern is right
				versions = append(versions, strings.TrimSuffix(filepath.Base(jars[0]), ".jar"))
			}
		}
	}
	if w.zooKeeper == "" {
		return versions
	}
	if version, err := servers.ZooKeeperVersion(ctx, w.zooKeeper); err == nil {
		versions = append(versions, "ZooKeeper "+version)
	}
	return versions
}
