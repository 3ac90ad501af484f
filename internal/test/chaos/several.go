// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// severalKeys is how many keys there are of which callers take some at once: m1 and so on.
const severalKeys = 6

// A whole is a lease over several keys at work. In the history it is a lease of each key.
type whole struct {
	*caller
	task   task // of the whole; its op names it, and its key is empty
	lease  *asynclock.MultiLease
	parts  []*holding
	lapsed []history.Time // when the part's own lease was over, by its own word; 0: it was not
	valid  history.Time   // the whole is known to have been trusted until then
}

// requestSeveral takes from two to four keys, works under them and gives them back.
func (c *caller) requestSeveral() {
	t := c.newTask()
	t.how = []string{"LockAll", "LockAllChan", "WithLockAll", "TryLockAll"}[c.rand.IntN(4)]
	t.mode, t.weight = history.Exclusive, 0
	var keys []string
	for _, i := range c.rand.Perm(severalKeys)[:2+c.rand.IntN(3)] { // in any order
		keys = append(keys, fmt.Sprint("m", i+1))
	}
	ctx := context.Background()
	if c.chance(c.Habits.Impatient) {
		limited, cancel := context.WithTimeout(ctx, c.upTo(100*time.Millisecond))
		defer cancel()
		ctx = limited
	}
	asked := history.Now()
	c.asked.Add(1)
	if t.how == "WithLockAll" {
		c.underSeveral(ctx, t, keys, asked)
		return
	}
	lease, err := c.takeSeveral(ctx, t, keys)
	if err != nil {
		c.refusedSeveral(t, keys, asked, err)
		return
	}
	h := c.grantedSeveral(t, asked, lease)
	h.work()
	over := history.Now()
	h.ended(over, lease.Unlock(context.Background()))
}

// takeSeveral takes all keys.
func (c *caller) takeSeveral(ctx context.Context, t task, keys []string) (*asynclock.MultiLease, error) {
	switch t.how {
	case "LockAll":
		return c.locks.LockAll(ctx, keys, t.options...)
	case "TryLockAll":
		return c.locks.TryLockAll(ctx, keys, t.options...)
	default:
		return (<-c.locks.LockAllChan(ctx, keys, t.options...)).Lease()
	}
}

// underSeveral is requestSeveral by WithLockAll.
func (c *caller) underSeveral(ctx context.Context, t task, keys []string, asked history.Time) {
	var h *whole
	var over history.Time
	err := c.locks.WithLockAll(ctx, keys, func(_ context.Context, lease *asynclock.MultiLease) error {
		h = c.grantedSeveral(t, asked, lease)
		h.work()
		over = history.Now()
		return nil
	}, t.options...)
	if h == nil {
		c.refusedSeveral(t, keys, asked, err)
		return
	}
	h.ended(over, err)
}

// part names the request for one of the keys of t, from 1.
func (t task) part(number int, key string) task {
	t.op, t.key = fmt.Sprintf("%s.%d", t.op, number), key
	return t
}

func (c *caller) grantedSeveral(t task, asked history.Time, lease *asynclock.MultiLease) *whole {
	told := history.Now()
	c.told.Add(1)
	h := &whole{caller: c, task: t, lease: lease, valid: told}
	for i, key := range lease.Keys() {
		p := t.part(i+1, key)
		c.history.Add(history.Record{
			Kind: history.Held, Op: p.op, Whole: t.op, Key: key, How: t.how, Begin: asked, End: told,
			Token: lease.Token(key), TTL: history.Span(t.ttl),
		})
		part, _ := asynclock.LeaseFrom(lease.Context(), key)
		h.parts = append(h.parts, &holding{caller: c, task: p, lease: part, valid: told})
	}
	h.lapsed = make([]history.Time, len(h.parts))
	return h
}

func (c *caller) refusedSeveral(t task, keys []string, asked history.Time, err error) {
	told := history.Now()
	c.told.Add(1)
	for i, key := range keys {
		c.history.Add(history.Record{
			Kind: history.Failed, Op: t.part(i+1, key).op, Whole: t.op, Key: key, How: t.how, Begin: asked, End: told, Error: errorName(err),
		})
	}
	time.Sleep(c.upTo(5 * time.Millisecond))
}

// ask asks each part and then the whole whether it is trusted.
func (h *whole) ask() bool {
	for i, p := range h.parts {
		if h.lapsed[i] == 0 && !p.lease.Valid(0) {
			h.lapsed[i] = history.Now()
		}
	}
	now := history.Now()
	if !h.lease.Valid(0) {
		return false
	}
	h.valid = now
	return true
}

// work holds the keys for their time, and writes to them meanwhile.
func (h *whole) work() {
	for writes := h.task.writes; writes > 0; writes-- {
		h.parts[h.rand.IntN(len(h.parts))].write()
	}
	for end := time.Now().Add(h.task.hold); h.ask(); {
		left := time.Until(end)
		if h.task.toEnd {
			left = time.Second
		}
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 10*time.Millisecond))
	}
}

// ended tells of the end of each part: the whole was given back at over, with that answer.
func (h *whole) ended(over history.Time, err error) {
	for i, p := range h.parts {
		p.valid = h.valid
		r := p.ending(over, err)
		r.Lapsed = h.lapsed[i]
		h.history.Add(r)
	}
}
