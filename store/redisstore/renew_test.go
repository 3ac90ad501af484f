// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func TestRenewOnlyExtends(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		for _, tt := range []struct {
			q        store.RenewRequest
			min, max time.Duration
		}{
			{store.RenewRequest{TTL: time.Second}, long / 2, long},
			{store.RenewRequest{TTL: time.Second, Token: token + 7}, long / 2, long},
			{store.RenewRequest{TTL: time.Second, NotifyQueued: true}, long / 2, long},
			{store.RenewRequest{TTL: 2 * long}, 3 * long / 2, 2 * long},
			{store.RenewRequest{TTL: 3 * long, Token: token + 9}, 5 * long / 2, 3 * long},
		} {
			tt.q.Key, tt.q.Owner = "key", "a"
			if got := c.renew(tt.q); got.Err != nil {
				t.Errorf("Renew %+v: got %v, want no error", tt.q, got.Err)
			}
			if left := sv.pttl(t, "key", 'l'); left < tt.min || left > tt.max {
				t.Errorf("TTL after Renew %+v: got %v, want %v to %v", tt.q, left, tt.min, tt.max)
			}
		}
	})
}

func TestRenewNeverBringsBack(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		q := redistest.Request("key", "a")
		q.TTL = 50 * time.Millisecond
		c.Want(q, store.Granted)
		sv.Pass(100 * time.Millisecond)
		renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: 1e15, NotifyQueued: true}
		if got := c.renew(renewal).Err; !errors.Is(got, store.ErrExpired) {
			t.Errorf("Renew of what has expired: got %v, want ErrExpired", got)
		}
		if n := sv.Number(t, "EXISTS", sv.redisKey("key", 'l')); n != 0 {
			t.Error("record after Renew of what has expired: got one, want none")
		}
		c.Hold("key", "b")
		if got := c.renew(renewal).Err; !errors.Is(got, store.ErrStolen) {
			t.Errorf("Renew of what another has: got %v, want ErrStolen", got)
		}
		if got := c.Inspect("key").Holder; got != "b at home" {
			t.Errorf("holder after a stranger's Renew: got %q, want b", got)
		}
	})
}

func TestRenewWritesTheLastTokenBack(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		used := token + 1e12
		c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: used})
		c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}) // a late copy
		if got := c.Inspect("key").Token; got != used {
			t.Errorf("Inspect: got token %d, want %d", got, used)
		}
		if left := sv.pttl(t, "key", 'f'); left < 23*time.Hour {
			t.Errorf("TTL of the counter: got %v, want 24h", left)
		}
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))
		if got := c.Hold("key", "b").Token; got != used+1 {
			t.Errorf("next token: got %d, want %d", got, used+1)
		}

		// Should the counter be lost, what the record says counts.
		used += 1e12
		c.renew(store.RenewRequest{Key: "key", Owner: "b", TTL: long, Token: used})
		sv.Do(t, "DEL", sv.redisKey("key", 'f'))
		if got := c.Wait("key", "c"); got.Mark != used+1 || got.Ticket != used+1 {
			t.Errorf("Waiting: got mark %d and ticket %d, want %d", got.Mark, got.Ticket, used+1)
		}
	})
}

func TestRenewTellsOfWaitersAndWatchesFromThenOn(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		c.Wait("key", "b")
		c.Wait("key", "c")
		q := store.RenewRequest{Key: "key", Owner: "a", TTL: long, NotifyQueued: true}
		for range 2 {
			if got := c.renew(q).Waiters; got != 2 {
				t.Errorf("Waiters: got %d, want 2", got)
			}
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "b"})
		c.release(store.ReleaseRequest{Key: "key", Owner: "c"})
		q.NotifyQueued = false // as before, not off
		if got := c.renew(q).Waiters; got != 0 {
			t.Errorf("Waiters: got %d, want 0", got)
		}
		c.heardNothing(sv)
		c.Wait("key", "d")
		c.Heard(store.EventQueued, "a")
	})
}

func TestRenewBatches(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		const n = 200 // several calls, the last one not full
		acquires := make([]store.AcquireRequest, n)
		renewals := make([]store.RenewRequest, n)
		for i := range n {
			acquires[i] = redistest.Request("key"+strconv.Itoa(i), "owner"+strconv.Itoa(i))
			renewals[i] = store.RenewRequest{Key: acquires[i].Key, Owner: acquires[i].Owner, TTL: 2 * long}
		}
		for i, got := range c.session.Acquire(t.Context(), acquires) {
			if got.Status != store.Granted {
				t.Fatalf("Acquire %d: got %+v, want Granted", i, got)
			}
		}
		want := map[int]error{
			0: store.ErrInvalidKey, 10: store.ErrInvalidOption, 63: store.ErrInvalidOption, 64: store.ErrExpired,
			65: store.ErrStolen, 150: store.ErrForeignData, 151: store.ErrForeignData, 199: store.ErrInvalidOption,
		}
		renewals[0].Key = ""
		renewals[10].Owner = "two words"
		renewals[63].TTL = 0
		sv.Do(t, "DEL", sv.redisKey("key64", 'l'))
		renewals[65].Owner = "owner66"
		sv.Do(t, "SET", sv.redisKey("key150", 'l'), "of another kind")
		sv.Do(t, "DEL", sv.redisKey("key151", 'l'))
		sv.Do(t, "HSET", sv.redisKey("key151", 'l'), "field", "value")
		renewals[199].Token = -1
		for i, got := range c.session.Renew(t.Context(), renewals) {
			if !errors.Is(got.Err, want[i]) {
				t.Errorf("Renew %d: got error %v, want %v", i, got.Err, want[i])
			}
			left := sv.pttl(t, "key"+strconv.Itoa(i), 'l')
			if extended := left > long; extended != (want[i] == nil) {
				t.Errorf("TTL %d: got %v, want it extended only without an error", i, left)
			}
		}
	})
}
