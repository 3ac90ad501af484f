// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

var errEnded = errors.New("the server has ended")

// A server is one running redis-server process.
type server struct {
	name string
	addr string
	dir  string
	pid  int
	done chan struct{} // closed when the process is gone
	kill func() error
}

// startServer starts one, with arguments in the form of its command line, in a
// directory of its own below dir.
func startServer(bin, dir, name string, port int, args ...string) (*server, error) {
	s := &server{name: name, addr: address(port), dir: filepath.Join(dir, name), done: make(chan struct{})}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	args = append(args,
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", s.dir, "--logfile", s.logfile(),
		"--daemonize", "no")
	cmd := exec.Command(bin, args...)
	cmd.SysProcAttr = serverAttr()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.pid, s.kill = cmd.Process.Pid, cmd.Process.Kill
	go func() { // ends with the process, and stop waits for it
		_ = cmd.Wait() // how it ended is in its log
		close(s.done)
	}()
	return s, nil
}

// inMemory are the arguments of a server that keeps data, but no files.
func inMemory(args ...string) []string {
	return append([]string{
		"--save", "", "--appendonly", "no",
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
	}, args...)
}

func (s *server) logfile() string { return filepath.Join(s.dir, "log") }

// stop ends the process and waits until it is gone. There is nothing to save,
// so it need not be asked.
func (s *server) stop() {
	_ = s.kill() // fails only if it has ended
	<-s.done
}

func (s *server) hasEnded() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// ended describes the end of a server that should be running.
func (s *server) ended() error {
	log, err := os.ReadFile(s.logfile())
	if err != nil {
		return fmt.Errorf("%w without a log", errEnded)
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return fmt.Errorf("%w; its log ends:\n\t%s", errEnded, strings.Join(lines[max(0, len(lines)-5):], "\n\t"))
}

// ask sends one command to this server, whatever its role.
func (s *server) ask(ctx context.Context, words ...string) (rueidis.RedisMessage, error) {
	if s.hasEnded() {
		return rueidis.RedisMessage{}, s.ended()
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{s.addr},
		ForceSingleClient: true,
		AlwaysRESP2:       true, // RESP3 marks texts with their format, in the text
		DisableCache:      true, // RESP2 has none, nor has a sentinel
	})
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Arbitrary(words...).Build()).ToMessage()
}

// facts asks a question that is answered in lines of name:value, as INFO is.
func (s *server) facts(ctx context.Context, words ...string) (map[string]string, error) {
	reply, err := s.ask(ctx, words...)
	if err != nil {
		return nil, err
	}
	text, err := reply.ToString()
	if err != nil {
		return nil, err
	}
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	return facts, nil
}

// answers checks that the process behind the address is the one we started.
func (s *server) answers(ctx context.Context) error {
	facts, err := s.facts(ctx, "INFO", "server")
	if err != nil {
		return err
	}
	return expect(facts, map[string]string{"process_id": strconv.Itoa(s.pid)})
}

// oldEnough is when a server can't have lost, by a restart, what is still in use:
// before, locks are not granted (see WithFailoverGrace in package redisstore).
const oldEnough = 17 // seconds: a TTL, and two for rounding

func (s *server) isOldEnough(ctx context.Context) error {
	facts, err := s.facts(ctx, "INFO", "server")
	if err != nil {
		return err
	}
	if age, err := strconv.Atoi(facts["uptime_in_seconds"]); err != nil || age < oldEnough {
		return fmt.Errorf("it has run for %q s, not for %d", facts["uptime_in_seconds"], oldEnough)
	}
	return nil
}

// expect checks that the facts are as wanted, and says which one is not.
func expect(facts, want map[string]string) error {
	for name, value := range want {
		if facts[name] != value {
			return fmt.Errorf("%s is %q, not %q", name, facts[name], value)
		}
	}
	return nil
}
