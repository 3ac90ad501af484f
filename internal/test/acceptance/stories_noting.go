// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/once"
)

// hasNotes reports whether the store has notes. If it has none, it has to say so.
func (env *Env) hasNotes(c *asynclock.Client) bool {
	env.Helper()
	if env.Connect(new(faultconn.Line)).Features().Notes {
		return true
	}
	if _, err := c.Note(env.ctx, "key"); !errors.Is(err, asynclock.ErrUnsupported) {
		env.Errorf("Note in a store without notes: got %v, want ErrUnsupported", err)
	}
	return false
}

// jobRunsOnceInItsInterval: processes all try at once, and over and over, until the job was done. It fails
// first, by a lost lease, so it takes another attempt.
func jobRunsOnceInItsInterval(env *Env) {
	clients := env.clients(4)
	if !env.hasNotes(clients[0]) {
		return
	}
	var begun, ended atomic.Int64
	job := func(ctx context.Context, run once.Run) error {
		if begun.Add(1) == 1 {
			if _, err := clients[0].ForceUnlock(env.ctx, "job", run.Lease.Token()); err != nil {
				env.Error(err)
			}
			return nil
		}
		if run.Attempt < 2 || run.Previous == nil {
			env.Errorf("run: got %+v, want attempt 2 or a later one", run)
		}
		ended.Add(1)
		return nil
	}
	var working sync.WaitGroup
	for _, c := range clients {
		working.Go(func() {
			for env.ctx.Err() == nil {
				o, _ := once.Do(env.ctx, c, "job", once.MaxInterval, job)
				if !o.Last.Ended.IsZero() {
					return
				}
				time.Sleep(time.Millisecond)
			}
			env.Errorf("the job was not done: %v", env.ctx.Err())
		})
	}
	working.Wait()
	if ended.Load() < 1 {
		env.Error("the job has not ended once")
	}
	last, err := once.LastRun(env.ctx, clients[0], "job")
	if err != nil || last.Ended.IsZero() || int64(last.Attempt) != begun.Load() {
		env.Errorf("LastRun: got %+v, error %v; want that the last of %d attempts has ended", last, err, begun.Load())
	}
	if o, err := once.Do(env.ctx, clients[1], "job", once.MaxInterval, job); err != nil || o.Ran {
		env.Errorf("Do after the run: got %+v, error %v; want the job done", o, err)
	}
}

// leadersAreSeen: candidates lead one after the other, and an observer sees each with its value.
func leadersAreSeen(env *Env) {
	clients := env.clients(3)
	var values []string
	if env.hasNotes(clients[0]) {
		values = []string{"a", "b"}
	} else {
		values = []string{"", ""}
	}
	ctx, cancel := context.WithCancel(env.ctx)
	defer cancel()
	leaders, err := elect.Observe(ctx, clients[2], "leader", elect.WithInterval(elect.MinInterval))
	if err != nil {
		env.Fatal(err)
	}
	highest := int64(0)
	for i, value := range values {
		err := elect.Run(ctx, clients[i], "leader", func(ctx context.Context, term *elect.Term) error {
			if term.Token() <= highest {
				env.Errorf("number of the term: got %d, want more than %d", term.Token(), highest)
			}
			highest = term.Token()
			for {
				select {
				case seen := <-leaders:
					if seen.Token == highest && string(seen.Value) == value {
						return elect.ErrResign
					}
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}, elect.WithValue([]byte(value)))
		if err != nil {
			env.Errorf("Run: got %v, want nil, after the observer has seen %q", err, value)
		}
	}
	for seen := range leaders {
		if seen.Token == 0 {
			return
		}
	}
	env.Error("the observer did not see that nobody leads")
}

// leadersAreTold: observers that look seldom see each leader with its value, and each end. A store that tells nobody has
// them look more often.
func leadersAreTold(env *Env) {
	clients := env.clients(3)
	var value []byte
	if env.hasNotes(clients[0]) {
		value = []byte("a")
	}
	ctx, cancel := context.WithCancel(env.ctx)
	defer cancel()
	var observers []<-chan elect.Leader
	for _, c := range clients {
		leaders, err := elect.Observe(ctx, c, "leader")
		if err != nil {
			env.Fatal(err)
		}
		observers = append(observers, leaders)
	}
	for range 2 {
		err := elect.Run(ctx, clients[0], "leader", func(_ context.Context, term *elect.Term) error {
			for _, leaders := range observers {
				env.awaitLeader(leaders, term.Token(), string(value))
			}
			return elect.ErrResign
		}, elect.WithValue(value))
		if err != nil {
			env.Errorf("Run: got %v, want nil, after all observers have seen the leader", err)
		}
		for _, leaders := range observers {
			env.awaitLeader(leaders, 0, "")
		}
	}
}

// awaitLeader waits until an observer has seen this leader.
func (env *Env) awaitLeader(leaders <-chan elect.Leader, token int64, value string) {
	env.Helper()
	for seen := range leaders {
		if seen.Token == token && string(seen.Value) == value {
			return
		}
	}
	env.Errorf("the observer did not see term %d with value %q", token, value)
}
