// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// A crew is the worker processes and their reports so far.
type crew struct {
	members []*member
	ended   sync.WaitGroup

	// heard receives a value whenever the fields below have changed. It has room for one, because
	// one is enough for another look.
	heard chan struct{}

	mu       sync.Mutex
	handoffs int       // how often the key came to another process
	taker    *member   // who took the key last
	tookAt   time.Time // when its report came
}

// A member is one worker process.
type member struct {
	name    string
	process *exec.Cmd
	orders  *json.Encoder
	stderr  bytes.Buffer // to be read after the process has ended
	doomed  bool         // it is meant to be killed

	state // guarded by the crew's mu
}

// A state is what a member last reported.
type state struct {
	doing   string // for people
	holds   bool
	rests   bool
	gone    bool
	token   int64  // of the lease it holds, or believes it holds
	updates int64  // written to the counter so far
	wrote   int    // writes that the ledger took
	refused string // the ledger's reason, if it refused one
	lost    string // why its lease ended, if it was lost
}

// The activities of a member, for people.
const (
	doingNothing = "rests"
	doingRace    = "writes"
	doingHold    = "HOLDS"
	doingWait    = "waits"
	doingPaused  = "paused"
	doingStale   = "refused"
	doingLost    = "lost it"
	doingGone    = "killed"
)

// start adds a worker process.
func (c *crew) start(name string, command []string) error {
	m := &member{name: name, process: exec.Command(command[0], command[1:]...)}
	m.doing = doingNothing
	m.process.Stderr = &m.stderr
	proc.Prepare(m.process)
	stdin, err := m.process.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := m.process.StdoutPipe()
	if err != nil {
		return err
	}
	m.orders = json.NewEncoder(stdin)
	if err := m.process.Start(); err != nil {
		return err
	}
	c.members = append(c.members, m)
	c.ended.Go(func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			var r report
			if json.Unmarshal(lines.Bytes(), &r) == nil {
				c.hear(m, r)
			}
		}
		_ = m.process.Wait() // the process has ended; the result does not matter
		c.mu.Lock()
		m.gone, m.holds, m.rests, m.doing = true, false, false, doingGone
		c.mu.Unlock()
		c.ring()
	})
	return nil
}

// stop kills all remaining members, paused or not, and waits until they have ended.
func (c *crew) stop() {
	for _, m := range c.members {
		if !c.state(m).gone {
			_ = proc.Kill(m.process.Process) // fails only if it has just ended
		}
	}
	c.ended.Wait()
}

// hear records the report of m.
func (c *crew) hear(m *member, r report) {
	c.mu.Lock()
	m.holds, m.rests = false, false
	m.updates = r.Updates
	switch r.Did {
	case didRest:
		m.rests, m.doing, m.token = true, doingNothing, 0
	case didUpdate:
		m.doing, m.token = doingRace, 0
	case didWait:
		m.doing = doingWait
	case didTake, didWrite:
		if r.Did == didWrite {
			m.wrote++
		} else if c.tookAt = time.Now(); c.taker != m {
			c.taker = m
			c.handoffs++
		}
		m.holds, m.doing, m.token = true, doingHold, r.Token
	case didRefuse:
		m.refused, m.doing = r.Text, doingStale
	case didLose:
		m.lost, m.doing = r.Text, doingLost
	}
	c.mu.Unlock()
	c.ring()
}

func (c *crew) ring() {
	select {
	case c.heard <- struct{}{}:
	default:
	}
}

// living returns the members that were not killed.
func (c *crew) living() []*member {
	var living []*member
	for _, m := range c.members {
		if !m.doomed {
			living = append(living, m)
		}
	}
	return living
}

// tell sends an order to each of the members.
func (c *crew) tell(do string, members ...*member) error {
	for _, m := range members {
		c.mu.Lock()
		m.rests = false
		c.mu.Unlock()
		if err := m.orders.Encode(order{do}); err != nil {
			return fmt.Errorf("process %s: %w", m.name, err)
		}
	}
	return nil
}

// pause stops m, and resume continues it.
func (c *crew) pause(m *member) error {
	if err := proc.Pause(m.process.Process); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.holds, m.doing = false, doingPaused
	return nil
}

func (c *crew) resume(m *member) error { return proc.Resume(m.process.Process) }

// kill ends m at once.
func (c *crew) kill(m *member) error {
	m.doomed = true
	return proc.Kill(m.process.Process)
}

// state returns the last report of m.
func (c *crew) state(m *member) state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.state
}

// lastTake returns the member that took the key last, and when its report came.
func (c *crew) lastTake() (*member, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taker, c.tookAt
}

// handoffCount returns how often the key came to another process so far.
func (c *crew) handoffCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handoffs
}

// updates returns what each member, dead or alive, has written to the counter.
func (c *crew) updates() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	updates := make([]int64, len(c.members))
	for i, m := range c.members {
		updates[i] = m.updates
	}
	return updates
}

// checkLocked returns an error if a member died that was not meant to. The caller holds the mutex.
func (c *crew) checkLocked() error {
	for _, m := range c.members {
		if m.gone && !m.doomed {
			text := strings.TrimSpace(m.stderr.String())
			return errors.New("process " + m.name + " ended by itself: " + text)
		}
	}
	return nil
}
