// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// Times prove nothing if the story's process, or a worker of it, was stalled. When a stalled
// process wakes up, two timers fire at once, even if one was well after the other. So a meter
// of stalls runs beside each story. A timing violation counts only if there was no stall.
// Otherwise the story is told again, up to a limit: a story that can't be measured has
// failed.
const (
	// steady is less than the longest stall that explains nothing: half of the
	// shortest time that stories count on, which is from the end of a lease whose
	// TTL is short to when its key may have another holder.
	steady = short / 20
	// tellings is how often a story is told at most.
	tellings = 5
)

// tell tells a story, each time at a place that open opens.
func tell(t *testing.T, open func(*testing.T) *Env, story func(*Env)) {
	t.Helper()
	for range tellings {
		env := open(t)
		story(env)
		wrong, stall := env.timing.take()
		if len(wrong) == 0 {
			return
		}
		if stall < steady {
			t.Errorf("mistimed, and no process stood still for more than %v: %q", stall, wrong)
			return
		}
		t.Logf("mistimed, perhaps because a process stood still for %v: %q", stall, wrong)
	}
	t.Errorf("a process stood still during each of %d tellings, want one that shows something", tellings)
}

// again opens a place that is open already, for another telling.
func (env *Env) again(*testing.T) *Env { return env }

// mistimed reports a failure that a stall would explain. Use Errorf for a failure that
// nothing excuses.
func (env *Env) mistimed(format string, args ...any) {
	env.timing.mu.Lock()
	defer env.timing.mu.Unlock()
	env.timing.wrong = append(env.timing.wrong, fmt.Sprintf(format, args...))
}

// wantWithin checks how long something took that began at start.
func (env *Env) wantWithin(limit time.Duration, start time.Time, what string) {
	if took := time.Since(start); took > limit {
		env.mistimed("%s: took %v, want at most %v", what, took, limit)
	}
}

// A timing is what is known of the time during one story.
type timing struct {
	mu    sync.Mutex
	wrong []string
	seen  time.Time     // when this process has last been seen to run
	stall time.Duration // the longest
}

// newTiming starts a meter that stops with the test.
func newTiming(t *testing.T) *timing {
	t.Helper()
	m, stop, stopped := &timing{seen: time.Now()}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		m.watch(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		if wrong, _ := m.take(); len(wrong) > 0 {
			t.Errorf("mistimed, outside of tell: %q", wrong)
		}
	})
	return m
}

// watch looks again and again whether this process runs, until stop is closed.
func (m *timing) watch(stop <-chan struct{}) {
	looks := time.NewTicker(10 * time.Millisecond)
	defer looks.Stop()
	for {
		select {
		case <-looks.C:
			m.look()
		case <-stop:
			return
		}
	}
}

// look finds how long this process has not been seen to run, the ten
// milliseconds between two looks included.
func (m *timing) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.stall = max(m.stall, now.Sub(m.seen))
	m.seen = now
}

// note takes in how long another process has stood still.
func (m *timing) note(stall time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stall = max(m.stall, stall)
}

// take returns what was wrong and the longest stall since it was last called.
func (m *timing) take() (wrong []string, stall time.Duration) {
	m.look()
	m.mu.Lock()
	defer m.mu.Unlock()
	wrong, stall = m.wrong, m.stall
	m.wrong, m.stall = nil, 0
	return wrong, stall
}
