// SPDX-License-Identifier: Apache-2.0

package javapeer

import (
	"fmt"
	"sync"
	"testing"
)

// Shared are the processes that all tests of a program have in common: one for each
// jar and options of the JVM, started when a test first needs it.
type Shared struct {
	mu     sync.Mutex
	starts map[string]func() (*Process, error) // the same each time; by jar and options
}

// Process returns the one process for a jar and options of the JVM.
func (s *Shared) Process(t *testing.T, jar string, options ...string) *Process {
	t.Helper()
	p, err := s.starter(jar, options)()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *Shared) starter(jar string, options []string) func() (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%q %q", jar, options)
	if s.starts[key] == nil {
		if s.starts == nil {
			s.starts = make(map[string]func() (*Process, error))
		}
		s.starts[key] = sync.OnceValues(func() (*Process, error) { return start(program(jar, options)) })
	}
	return s.starts[key]
}

// Tests are those of m, after which the processes are stopped: before goleak, which is
// to be given this, looks for what is left.
func (s *Shared) Tests(m *testing.M) interface{ Run() int } { return tests{m, s} }

type tests struct {
	m      *testing.M
	shared *Shared
}

func (t tests) Run() int {
	defer t.shared.stop()
	return t.m.Run()
}

// stop is for when no test runs any more.
func (s *Shared) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, start := range s.starts {
		if p, err := start(); err == nil {
			p.Kill()
		}
	}
}
