// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// inBubble opens a store inside a synctest bubble.
func inBubble(t *testing.T) *Store {
	t.Helper()
	_, option := redistest.InBubble(t)
	st, err := Open(option, WithoutLogger())
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
		first := c.Want(q, store.Granted)

		time.Sleep(q.TTL - 2*time.Millisecond)
		if got := c.Inspect("key"); !got.Held || got.Remaining > 2*time.Millisecond {
			t.Errorf("just before the end: got %+v, want it held", got)
		}
		time.Sleep(3 * time.Millisecond)
		if got := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: q.TTL}).Err; !errors.Is(got, store.ErrExpired) {
			t.Errorf("Renew just after the end: got %v, want ErrExpired", got)
		}
		if got := c.Hold("key", "b").Token; got < first.Token+int64(q.TTL/time.Microsecond) {
			t.Errorf("token 15s later: got %d, want 15e6 more than %d", got, first.Token)
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
		silent.WaiterTTL, asking.WaiterTTL = 4500*time.Millisecond, 4500*time.Millisecond
		c.Want(holder, store.Granted)
		c.Want(silent, store.Waiting)
		for range 10 {
			c.Want(asking, store.Waiting)
			time.Sleep(4400 * time.Millisecond)
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		c.Heard(store.EventGrant, "asking")
	})
}
