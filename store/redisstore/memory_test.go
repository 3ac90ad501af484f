// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A server out of memory refuses SET, except to a script whose first write is one that the
// server allows. Releases and renewals must go on then.

func TestAServerOutOfMemoryGrantsNothingAndReleases(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	a.Hold("key", "a")
	alone, inside := a.Hold("alone", "a").Token, a.Hold("alone, and handed on inside the client", "a").Token
	sv.Do(t, "SET", sv.redisKey("alone, once queued for", 'f'), strconv.FormatInt(alone-1, 10), "PX", "60000") // a ticket's
	queued := a.Hold("alone, once queued for", "a").Token
	b.Wait("key", "b")
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	before := sv.dump(t, "key") + sv.dump(t, "free")
	for _, q := range []store.AcquireRequest{redistest.Request("free", "c"), redistest.Request("key", "c")} {
		if got := a.Acquire(q).Err; !errors.Is(got, store.ErrUnreachable) {
			t.Errorf("Acquire of %q: got %v, want ErrUnreachable", q.Key, got)
		}
	}
	if after := sv.dump(t, "key") + sv.dump(t, "free"); after != before {
		t.Errorf("refused acquires changed %q to %q", before, after)
	}
	b.heardNothing(sv)
	a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: 2 * long}, nil)
	for key, token := range map[string]int64{"alone": alone, "alone, and handed on inside the client": inside + 1, "alone, once queued for": queued} {
		if !a.release(store.ReleaseRequest{Key: key, Owner: "a", Token: token}).WasHeld {
			t.Errorf("Release of %q: got WasHeld false, want true", key)
		}
		if got := sv.Do(t, "GET", sv.redisKey(key, 'l')); got != vacancyOf(token) {
			t.Errorf("left behind in %q: got %q, want the vacancy of %d", key, got, token)
		}
	}
	a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: 1 << 51})
	if got := b.Heard(store.EventGrant, "b").Grant.Token; got != 1<<51+1 {
		t.Errorf("token: got %d, want %d", got, 1<<51+1)
	}
}

func TestRenewalsByAServerOutOfMemory(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	for name, change := range map[string]func(*store.RenewRequest){
		"first was handed on inside the client": func(q *store.RenewRequest) { q.Token++ },
		"first begins to watch":                 func(q *store.RenewRequest) { q.NotifyQueued = true },
		"first does both":                       func(q *store.RenewRequest) { q.Token++; q.NotifyQueued = true },
		"first is lost":                         func(q *store.RenewRequest) { q.Owner = "stranger" },
	} {
		sv.Do(t, "CONFIG", "SET", "maxmemory", "0")
		const n = 4
		var given [n]int64
		renewals := make([]store.RenewRequest, n)
		for i := range renewals {
			key := name + strconv.Itoa(i)
			given[i] = c.Hold(key, "a").Token
			renewals[i] = store.RenewRequest{Key: key, Owner: "a", TTL: 2 * long, Token: given[i]}
		}
		change(&renewals[0])
		renewals[2].Token += 7
		renewals[2].NotifyQueued = true
		sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
		for i, got := range c.session.Renew(t.Context(), renewals) {
			if renewals[i].Owner == "stranger" {
				if !errors.Is(got.Err, store.ErrStolen) {
					t.Errorf("%s, %d: got %v, want ErrStolen", name, i, got.Err)
				}
				continue
			}
			if got.Err != nil {
				t.Errorf("%s, %d: got %v, want no error", name, i, got.Err)
			}
			if left := sv.pttl(t, renewals[i].Key, 'l'); left <= long {
				t.Errorf("%s, %d: TTL: got %v, want %v", name, i, left, 2*long)
			}
			if got := c.Inspect(renewals[i].Key).Token; got != renewals[i].Token {
				t.Errorf("%s, %d: token: got %d, want %d as used", name, i, got, renewals[i].Token)
			}
			if renewals[i].Token == given[i] {
				continue // the record has the token
			}
			if got := sv.Number(t, "GET", sv.redisKey(renewals[i].Key, 'f')); got != renewals[i].Token {
				t.Errorf("%s, %d: counter: got %d, want %d as used", name, i, got, renewals[i].Token)
			}
		}
	}
}

func TestAServerOutOfMemoryKeepsKeysBack(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	token := c.Hold("key", "a").Token
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	c.releaseHeld(store.ReleaseRequest{Key: "key", Owner: "a", Token: token + 1, HoldBack: 2 * long})
	if left := sv.pttl(t, "key", 'l'); left <= long {
		t.Errorf("TTL of the key kept back: got %v, want %v", left, 2*long)
	}
	c.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long}, store.ErrExpired) // what was released
	if got := sv.Number(t, "GET", sv.redisKey("key", 'f')); got != token+1 {
		t.Errorf("counter: got %d, want %d as used", got, token+1)
	}
}
