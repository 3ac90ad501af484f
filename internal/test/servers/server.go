// SPDX-License-Identifier: Apache-2.0

// Package servers starts the servers that tests need: Redis alone, in a Sentinel set and
// in a Cluster, PostgreSQL, MariaDB and ZooKeeper. They listen on free ports of
// 127.0.0.1, keep their data in directories of their own, and never outlive the process
// that starts them.
//
// To read the code, begin with server.go, which is what all of them have in common.
// redis.go starts one Redis, and sentinel.go and cluster.go several that work together.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// A Server is a process that comes and goes. Its port and its data stay.
type Server struct {
	Name string // for people
	Addr string // for clients
	Dir  string // of its own, with its log

	command func() *exec.Cmd            // makes the process, each time anew
	check   func(context.Context) error // whether it is this process that serves
	quit    syscall.Signal              // ends the process at once; 0: SIGKILL does
	process *proc.Process
}

const host = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Port is that of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// Start starts the process, with whatever data it has, and does not wait for it.
func (s *Server) Start() error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has one of its own
	cmd := s.command()
	cmd.Stdout, cmd.Stderr = log, log
	process, err := proc.Start(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	s.process = process
	return nil
}

// Restart is Start, and waits until the server serves.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Start(); err != nil {
		return err
	}
	return s.Await(ctx)
}

// Await waits until the server serves. It gives up at once when the process has ended.
func (s *Server) Await(ctx context.Context) error {
	return Await(ctx, s.Name, func(ctx context.Context) error {
		if err := s.Died(); err != nil {
			return err
		}
		return s.check(ctx)
	})
}

// launch is the first Restart. If it fails, no process is left.
func (s *Server) launch(ctx context.Context) error {
	_ = os.Remove(s.log()) // of a try on another port
	err := s.Restart(ctx)
	if err != nil {
		s.Kill()
	}
	return err
}

func (s *Server) log() string { return filepath.Join(s.Dir, "log") }

// Kill ends the process as a power failure would, and waits until it is gone.
func (s *Server) Kill() {
	switch {
	case s.process == nil || s.Ended():
	case s.quit == 0:
		_ = s.process.Kill() // it is ours, so it can't be refused
	default:
		_ = s.process.Child.Signal(s.quit) // fails only if it has ended meanwhile
		<-s.process.Ended()
	}
}

// Pause stops the process, until Resume.
func (s *Server) Pause() error { return s.process.Pause() }

// Resume lets a paused process run on.
func (s *Server) Resume() error { return s.process.Resume() }

// Ended reports whether the process is gone.
func (s *Server) Ended() bool {
	select {
	case <-s.process.Ended():
		return true
	default:
		return false
	}
}

// errEnded is in errors about a process that is gone.
var errEnded = errors.New("the server has ended")

// Died returns nil while the process runs, and then what it said last.
func (s *Server) Died() error {
	if !s.Ended() {
		return nil
	}
	text, err := os.ReadFile(s.log())
	if err != nil {
		return fmt.Errorf("%w without a log", errEnded)
	}
	cause := errEnded
	switch log := string(text); {
	case strings.Contains(log, "already in use"):
		cause = fmt.Errorf("%w: %w", errEnded, errTaken)
	case strings.Contains(log, "Failed finding TLS support"), strings.Contains(log, "Bad directive") && strings.Contains(log, "tls-"):
		cause = fmt.Errorf("%w: %w", errEnded, ErrNoTLS)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	const most = 10
	return fmt.Errorf("%w; its log ends:\n\t%s", cause, strings.Join(lines[max(0, len(lines)-most):], "\n\t"))
}
