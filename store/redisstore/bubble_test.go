// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// inBubble opens a store inside a synctest bubble.
func inBubble(t *testing.T) *Store {
	t.Helper()
	_, option := redistest.InBubble(t)
	st, err := Open(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		st.Close()
		time.Sleep(time.Minute) // rueidis' last timers
	})
	return st
}

func TestAHoldingEndsWithItsTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := join(t, inBubble(t))
		q := redistest.Request("key", "a")
		q.TTL = 15 * time.Second
		first := c.Want(q, asynclock.Granted)

		time.Sleep(q.TTL - 2*time.Millisecond)
		if got := c.Inspect("key"); !got.Held || got.Remaining > 2*time.Millisecond {
			t.Errorf("just before the end: got %+v, want it held", got)
		}
		time.Sleep(3 * time.Millisecond)
		if got := c.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: q.TTL}).Err; !errors.Is(got, asynclock.ErrExpired) {
			t.Errorf("Renew just after the end: got %v, want ErrExpired", got)
		}
		if got := c.Hold("key", "b").First; got < first.First+int64(q.TTL/time.Microsecond) {
			t.Errorf("token 15s later: got %d, want 15e6 more than %d", got, first.First)
		}
	})
}

func TestAWaiterLivesAsLongAsItAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := inBubble(t)
		c := join(t, st)
		holder, silent, asking := redistest.Request("key", "a"), redistest.Request("key", "silent"), redistest.Request("key", "asking")
		holder.TTL = time.Hour
		silent.Liveness, asking.Liveness = 4500*time.Millisecond, 4500*time.Millisecond
		c.Want(holder, asynclock.Granted)
		c.Want(silent, asynclock.Waiting)
		for range 10 {
			c.Want(asking, asynclock.Waiting)
			time.Sleep(4400 * time.Millisecond)
		}
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "a"})
		c.Heard(asynclock.EventGrant, "asking")
	})
}
