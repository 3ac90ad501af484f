// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// Ports of our servers are below those that systems give to outgoing
// connections.
const (
	firstPort = 23000
	lastPort  = 23099
)

// A server is a redis-server whose process comes and goes, and whose port stays.
type server struct {
	dir     string
	port    string
	args    []string
	env     []string
	process *proc.Process
	admin   rueidis.Client // not through any proxy
}

// startServer starts one that keeps its data in dir.
func startServer(ctx context.Context, dir string, env []string, args ...string) (*server, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for range 20 {
		port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1))
		if !isFree(port) {
			continue
		}
		s := &server{dir: dir, port: port, env: env, args: args}
		if s.run(ctx) == nil {
			return s, nil
		}
		s.close()
	}
	return nil, fmt.Errorf("redis-server does not start; see %s", filepath.Join(dir, "log"))
}

func isFree(port string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	return err == nil && l.Close() == nil
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", s.port) }

// run starts the process and waits until it answers.
func (s *server) run(ctx context.Context) error {
	args := slices.Concat(s.args, []string{ // theirs first: a configuration file has to be
		"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--logfile", filepath.Join(s.dir, "log"),
		"--enable-debug-command", "yes",
	})
	cmd := exec.Command("redis-server", args...)
	cmd.Env = append(os.Environ(), s.env...)
	p, err := proc.Start(cmd)
	if err != nil {
		return err
	}
	s.process = p
	for tries := 0; ; tries++ {
		err := s.tryAdmin(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("redis-server: %w", p.Err())
		case <-time.After(10 * time.Millisecond):
		}
		if tries == 1000 {
			return err
		}
	}
}

// tryAdmin connects, and makes sure that it is our process that answers, and that
// it would answer anything.
func (s *server) tryAdmin(ctx context.Context) error {
	if s.admin == nil {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{s.addr()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		})
		if err != nil {
			return err
		}
		s.admin = client
	}
	info, err := s.admin.Do(ctx, s.admin.B().Info().Build()).ToString()
	if err != nil {
		return err
	}
	if strings.Contains(info, "loading:1\r\n") { // it answers this, and nothing else yet
		return errors.New("the server is reading its data")
	}
	if want := fmt.Sprintf("process_id:%d\r\n", s.process.Child.Pid); !strings.Contains(info, want) {
		return errors.New("another process has the port")
	}
	return nil
}

// ask sends a command and waits for the answer.
func (s *server) ask(ctx context.Context, words ...string) (rueidis.RedisMessage, error) {
	m, err := s.admin.Do(ctx, s.admin.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return m, fmt.Errorf("%s: %w", words[0], err)
	}
	return m, nil
}

// tell is ask for a command whose answer says only that it was done.
func (s *server) tell(ctx context.Context, words ...string) error {
	_, err := s.ask(ctx, words...)
	return err
}

// text is ask for an answer to be read by eye, whatever its type.
func (s *server) text(ctx context.Context, words ...string) (string, error) {
	m, err := s.ask(ctx, words...)
	if err != nil {
		return "", err
	}
	if m.IsString() {
		return m.ToString()
	}
	value, err := m.ToAny()
	return fmt.Sprint(value), err
}

// list is ask for an answer of several words.
func (s *server) list(ctx context.Context, words ...string) ([]string, error) {
	m, err := s.ask(ctx, words...)
	if err != nil {
		return nil, err
	}
	return m.AsStrSlice()
}

// role is "master" or "slave", as the server says.
func (s *server) role(ctx context.Context) (string, error) {
	m, err := s.ask(ctx, "ROLE")
	if err != nil {
		return "", err
	}
	parts, err := m.ToArray()
	if err != nil || len(parts) == 0 {
		return "", errors.Join(errors.New("ROLE says nothing"), err)
	}
	return parts[0].ToString()
}

// forget removes what the server has on disk, for its next start.
func (s *server) forget() error { return os.RemoveAll(filepath.Join(s.dir, "appendonlydir")) }

func (s *server) close() {
	if s.admin != nil {
		s.admin.Close()
	}
	if s.process != nil {
		_ = s.process.Kill()
	}
}
