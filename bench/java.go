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
	"sync"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// A jvm is the process of the peers in Java: see java/src. It speaks the line protocol of
// internal/test/interop/javapeer.
type jvm struct {
	process  *proc.Process
	in       io.Writer
	complain bytes.Buffer  // what it wrote to stderr, to be read when over is closed
	over     chan struct{} // closed when the process is gone

	mu      sync.Mutex
	answers map[string]chan string // by the id of a command
	last    int
}

// startJVM builds the program with Maven and starts it. The compiler is not held back, as it is in
// tests: what is measured runs warm.
func startJVM(ctx context.Context) (*jvm, error) {
	build := exec.CommandContext(ctx, "mvn", "-B", "-q", "-ntp", "-Dstyle.color=never", "package")
	build.Dir = "java"
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mvn package in bench/java: %w: %s", err, lastLine(said))
	}
	cmd := exec.Command("java", "-Xmx1g", "-XX:+UseParallelGC", "-jar", filepath.Join("java", "target", "peer.jar"))
	j := &jvm{over: make(chan struct{}), answers: make(map[string]chan string)}
	cmd.Stderr = &j.complain
	in, err := cmd.StdinPipe() // closed when the process has ended
	if err != nil {
		return nil, err
	}
	j.in = in
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	ready := j.expect("ready")
	j.process, err = proc.Start(cmd)
	_ = theirs.Close() // the process has its own
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	go j.listen(out) // ends with the process
	select {
	case <-ready:
		return j, nil
	case <-j.over:
		return nil, fmt.Errorf("the JVM ended at once: %s", lastLine(j.complain.Bytes()))
	case <-ctx.Done():
		j.stop()
		return nil, ctx.Err()
	}
}

func lastLine(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return lines[len(lines)-1]
}

func (j *jvm) stop() {
	_ = j.process.Kill() // fails only if it has ended
	<-j.over
}

// listen passes each answer on to whoever waits for it.
func (j *jvm) listen(out io.ReadCloser) {
	defer close(j.over)
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		id, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		j.mu.Lock()
		answer := j.answers[id]
		delete(j.answers, id)
		j.mu.Unlock()
		if answer != nil {
			answer <- rest
		}
	}
	_ = out.Close() // nothing more comes
	<-j.process.Ended()
}

func (j *jvm) expect(id string) <-chan string {
	answer := make(chan string, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers[id] = answer
	return answer
}

func (j *jvm) next() string {
	j.mu.Lock()
	defer j.mu.Unlock()
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
	answer := j.expect(id)
	if _, err := fmt.Fprintln(j.in, strings.Join(words, " ")); err != nil {
		return "", fmt.Errorf("the JVM does not listen: %w", err)
	}
	select {
	case text := <-answer:
		return parseAnswer(text)
	case <-j.over:
		return "", fmt.Errorf("the JVM has ended: %s", lastLine(j.complain.Bytes()))
	case <-ctx.Done():
		return "", ctx.Err()
	}
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

// A javaPeer is one contestant in the JVM.
type javaPeer struct {
	jvm    *jvm
	handle string
	key    string
}

// openJava opens a recipe, by clients that connect to these addresses.
func openJava(ctx context.Context, j *jvm, redis, zooKeeper, recipe, key string) (*javaPeer, error) {
	p := &javaPeer{j, "peer" + j.next(), key}
	_, err := j.say(ctx, p.handle, "open", redis, zooKeeper, recipe)
	return p, err
}

func (p *javaPeer) close(ctx context.Context) error {
	_, err := p.jvm.say(ctx, p.handle, "close")
	return err
}

// ask has the peer do something, and returns the numbers that it answers.
func (p *javaPeer) ask(ctx context.Context, verb string, arguments ...int) ([]float64, error) {
	words := []string{p.key}
	for _, a := range arguments {
		words = append(words, strconv.Itoa(a))
	}
	text, err := p.jvm.say(ctx, p.handle, verb, words...)
	if err != nil {
		return nil, err
	}
	return parseNumbers(text)
}

func parseNumbers(text string) (numbers []float64, err error) {
	for word := range strings.FieldsSeq(text) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, v)
	}
	return numbers, nil
}
