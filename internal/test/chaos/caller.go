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
}

var everyday = habits{Long: 2000, Unrenewed: 20, ToEnd: 100, Bounded: 20, Impatient: 10, Blind: 4, Rows: 8}

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
	if c.chance(3) {
		t.writes = 1 + c.rand.IntN(2)
	}
	switch {
	case c.chance(c.Habits.Long): // so long that it has to be renewed
		t.hold = t.ttl/2 + c.upTo(t.ttl)
		t.writes = 2
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

// request asks for a key, works under it and gives it back.
func (c *caller) request() {
	t := c.newTask()
	ctx := context.Background()
	if c.chance(c.Habits.Impatient) { // one that gives up
		limited, cancel := context.WithTimeout(ctx, c.upTo(100*time.Millisecond))
		defer cancel()
		ctx = limited
	}
	asked := history.Now()
	c.asked.Add(1)
	if t.how == "WithLock" {
		c.under(ctx, t, asked)
		return
	}
	var lease *asynclock.Lease
	var err error
	switch t.how {
	case "Lock":
		lease, err = c.locks.Lock(ctx, t.key, t.options...)
	case "TryLock":
		lease, err = c.locks.TryLock(ctx, t.key, t.options...)
	case "LockChan":
		lease, err = (<-c.locks.LockChan(ctx, t.key, t.options...)).Lease()
	}
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

// under is request by WithLock.
func (c *caller) under(ctx context.Context, t task, asked history.Time) {
	var h *holding
	var over history.Time
	err := c.locks.WithLock(ctx, t.key, func(_ context.Context, lease *asynclock.Lease) error {
		h = c.granted(t, asked, lease)
		h.work()
		h.ask()
		over = history.Now()
		return nil
	}, t.options...)
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
		Token: lease.Token(), TTL: history.Span(t.ttl),
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
