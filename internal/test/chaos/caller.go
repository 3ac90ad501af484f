// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// A caller is a goroutine that asks for one key after the other.
type caller struct {
	*worker
	rand *rand.Rand
}

// Habits are how often callers do something special: once in so many times; 0 is
// never.
type habits struct {
	Long      int // keep a key for so long that it has to be renewed
	Unrenewed int // do without renewal
	ToEnd     int // and then keep the key until the lease ends by itself
	Bounded   int // have a maximum hold
	Impatient int // give up waiting
	Blind     int // write without asking whether the lease is valid
	Rows      int // write to a row, not to another resource
	Shares    int // share a key with other readers, or take permits
	Several   int // take several keys at once

	Elections bool // workers take part in them
	Jobs      bool // workers run some
}

var everyday = habits{
	Long: 2000, Unrenewed: 20, ToEnd: 100, Bounded: 20, Impatient: 10, Blind: 4, Rows: 8, Shares: 4, Several: 16, Elections: true, Jobs: true,
}

// chance is true once in so many times.
func (c *caller) chance(once int) bool { return once > 0 && c.rand.IntN(once) == 0 }

// upTo returns a time below limit.
func (c *caller) upTo(limit time.Duration) time.Duration {
	return time.Duration(c.rand.Int64N(int64(limit)))
}

// A task is what a caller wants with a key.
type task struct {
	op, key string
	how     string
	mode    history.Mode
	weight  int // of permits
	ttl     time.Duration
	hold    time.Duration // how long to keep it
	toEnd   bool          // keep it until it ends by itself
	writes  int
	blindly bool // write without asking whether the lease is valid
	options []asynclock.LockOption
}

func (c *caller) newTask() task {
	t := task{
		op:      c.newOp(),
		key:     c.Keys[c.rand.IntN(len(c.Keys))],
		how:     []string{"Lock", "LockChan", "WithLock", "TryLock"}[c.rand.IntN(4)],
		ttl:     c.TTLs[c.rand.IntN(len(c.TTLs))],
		blindly: c.chance(c.Habits.Blind),
	}
	t.options = append(t.options, asynclock.WithTTL(t.ttl))
	if c.chance(c.Habits.Shares) {
		c.share(&t)
	}
	if t.mode == history.Exclusive && c.chance(3) {
		t.writes = 1 + c.rand.IntN(2)
	}
	switch {
	case c.chance(c.Habits.Long): // so long that it has to be renewed
		t.hold = t.ttl/2 + c.upTo(t.ttl)
		if t.mode == history.Exclusive {
			t.writes = 2
		}
	case c.chance(3):
		t.hold = c.upTo(5 * time.Millisecond)
	}
	if c.chance(c.Habits.Unrenewed) {
		t.options = append(t.options, asynclock.WithRenewal(false))
		t.toEnd = c.chance(c.Habits.ToEnd)
	} else if c.chance(c.Habits.Bounded) {
		t.options = append(t.options, asynclock.WithMaxHold(t.ttl/2))
	}
	return t
}

// longestHold is how long a caller that nothing hinders keeps a key.
func longestHold(ttls []time.Duration) (longest time.Duration) {
	for _, ttl := range ttls {
		longest = max(longest, ttl*3/2)
	}
	return longest
}

// request asks for a key, or for several, works under it and gives it back.
func (c *caller) request() {
	if c.chance(c.Habits.Several) {
		c.requestSeveral()
		return
	}
	t := c.newTask()
	ctx := context.Background()
	if c.chance(c.Habits.Impatient) { // one that gives up
		limited, cancel := context.WithTimeout(ctx, c.upTo(100*time.Millisecond))
		defer cancel()
		ctx = limited
	}
	asked := history.Now()
	c.asked.Add(1)
	if with := c.with(t); with != nil {
		c.under(ctx, t, asked, with)
		return
	}
	lease, err := c.take(ctx, t)
	if err != nil {
		c.refused(t, asked, err)
		return
	}
	h := c.granted(t, asked, lease)
	h.work()
	h.ask()
	over := history.Now()
	err = lease.Unlock(context.Background())
	h.ended(over, err)
}

// A with is a call that runs a function under a lease.
type with func(ctx context.Context, fn func(context.Context, *asynclock.Lease) error) error

// with returns the task's call, if it is such a one.
func (c *caller) with(t task) with {
	switch t.how {
	case "WithLock":
		return func(ctx context.Context, fn func(context.Context, *asynclock.Lease) error) error {
			return c.locks.WithLock(ctx, t.key, fn, t.options...)
		}
	case "WithRLock":
		return func(ctx context.Context, fn func(context.Context, *asynclock.Lease) error) error {
			return c.locks.WithRLock(ctx, t.key, fn, t.options...)
		}
	}
	return nil
}

// under is request by such a call.
func (c *caller) under(ctx context.Context, t task, asked history.Time, call with) {
	var h *holding
	var over history.Time
	err := call(ctx, func(_ context.Context, lease *asynclock.Lease) error {
		h = c.granted(t, asked, lease)
		h.work()
		h.ask()
		over = history.Now()
		return nil
	})
	if h == nil {
		c.refused(t, asked, err)
		return
	}
	h.ended(over, err)
}

func (c *caller) granted(t task, asked history.Time, lease *asynclock.Lease) *holding {
	told := history.Now()
	c.told.Add(1)
	c.history.Add(history.Record{
		Kind: history.Held, Op: t.op, Key: t.key, How: t.how, Begin: asked, End: told,
		Token: lease.Token(), TTL: history.Span(t.ttl), Mode: t.mode, Weight: lease.Weight(), Limit: t.limit(),
	})
	return &holding{caller: c, task: t, lease: lease, valid: told}
}

func (c *caller) refused(t task, asked history.Time, err error) {
	told := history.Now()
	c.told.Add(1)
	c.history.Add(history.Record{
		Kind: history.Failed, Op: t.op, Key: t.key, How: t.how, Begin: asked, End: told, Error: errorName(err),
	})
	time.Sleep(c.upTo(5 * time.Millisecond)) // as programs do before they try again
}
