// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// ages before the store was opened.
const ages = -int64(time.Hour)

// slept makes the store take the server to be asleep, or not to be.
func (st *Store) slept(asleep bool) {
	if asleep {
		st.activity.last.Store(ages)
	} else {
		st.activity.last.Store(-ages) // as if this took no time, which it may
	}
}

// holds has the client take key, and another one wait for it, so many times.
func (c *client) holds(sv *server, key string, next *client, waiters int) (give store.ReleaseRequest, takers []string) {
	c.T.Helper()
	owner := uuid.NewString()
	give = store.ReleaseRequest{Key: key, Owner: owner, Token: c.Hold(key, owner).Token, Clean: true}
	for range waiters {
		taker := uuid.NewString()
		next.waitForMessage(key, taker)
		takers = append(takers, taker)
	}
	sv.Pass(time.Millisecond) // or the release is no common one
	return give, takers
}

// gives sends a release to a server that is asleep, or is not.
func (c *client) gives(give store.ReleaseRequest, asleep bool) {
	c.T.Helper()
	c.session.store.slept(asleep)
	if !c.release(give).WasHeld {
		c.T.Errorf("Release of %q: got WasHeld false, want true", give.Key)
	}
}

// take has takers wait for the key, one after the other, and give it back.
func (c *client) take(key string, takers []string) {
	c.T.Helper()
	for _, taker := range takers {
		c.release(store.ReleaseRequest{Key: key, Owner: taker, Token: c.Heard(store.EventGrant, taker).Grant.Token})
	}
}

// handsOn has the client take key and give it to another.
func (c *client) handsOn(sv *server, key string, next *client) {
	c.T.Helper()
	give, takers := c.holds(sv, key, next, 1)
	c.gives(give, true)
	next.take(key, takers)
	if !c.session.handoffs.noted(key) {
		c.T.Errorf("%q: got that it was not handed to the only waiter, want a common release", key)
	}
}

// inTheScript is how often release_fast.lua calls a primer's command by itself.
const inTheScript = 1

// A release has a command ahead of it if the key was handed to the only waiter last time
// and the server may be asleep, and else it has none.
func TestAPrimerGoesWhereItIsOfUse(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	other := otherBit(a.session, "key")
	for i, step := range []struct {
		what    string
		key     string
		waiters int
		asleep  bool
		want    int
	}{
		{"the first release, to nobody", "key", 0, true, 0},
		{"to nobody after that", "key", 0, true, 0},
		{"the first time that it is handed on", "key", 1, true, 0},
		{"handed on after that", "key", 1, true, 1},
		{"and again", "key", 1, true, 1},
		{"handed on by a server that is awake", "key", 1, false, 0},
		{"another key", other, 0, true, 0},
		{"to the first of two, unexpectedly", "key", 2, true, 1},
		{"to the first of two after that", "key", 2, true, 0},
		{"to the only one, unexpectedly", "key", 1, true, 0},
		{"to nobody, unexpectedly", "key", 0, true, 1},
		{"to nobody after that, too", "key", 0, true, 0},
	} {
		give, takers := a.holds(sv, step.key, b, step.waiters)
		before := sv.calls(t, "exists")
		a.gives(give, step.asleep)
		if got := sv.calls(t, "exists") - before - inTheScript; got != step.want {
			t.Errorf("%d, %s: got %d primers, want %d", i, step.what, got, step.want)
		}
		b.take(step.key, takers)
	}
}

// otherBit is a key whose handoffs are not remembered in the same place as those of key.
func otherBit(s *session, key string) string {
	word, mask := s.handoffs.bit(key)
	for i := 0; ; i++ {
		other := "other" + strconv.Itoa(i)
		if w, m := s.handoffs.bit(other); w != word || m != mask {
			return other
		}
	}
}

// Releases that are sent together have each other's answers ahead of them.
func TestReleasesTogetherHaveNoPrimer(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	var batch []store.ReleaseRequest
	for _, key := range []string{"one", "two"} {
		a.handsOn(sv, key, b)
		give, _ := a.holds(sv, key, nil, 0)
		batch = append(batch, give)
	}
	st.slept(true)
	before := sv.calls(t, "exists")
	for i, reply := range a.session.Release(t.Context(), batch) {
		if reply.Err != nil || !reply.WasHeld {
			t.Errorf("Release of %q: got %+v, want that it was held", batch[i].Key, reply)
		}
	}
	if got := sv.calls(t, "exists") - before - len(batch)*inTheScript; got != 0 {
		t.Errorf("got %d primers, want none", got)
	}
}

// Anything that a client hears from the server shows that the server is awake.
func TestWhatIsHeardOfAServer(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, sv.store(t)) // whose answers a does not hear
		heard := func(what string, does func()) {
			t.Helper()
			st.slept(true)
			does()
			if st.activity.last.Load() == ages {
				t.Errorf("%s: got a server that is taken to be asleep, want it known to be awake", what)
			}
		}
		b.Hold("key", "b")
		heard("an answer", func() { a.Wait("key", "a") })
		heard("a message", func() {
			b.release(store.ReleaseRequest{Key: "key", Owner: "b"})
			a.Heard(store.EventGrant, "a")
		})
		heard("an answer to a batch", func() { a.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}) })
	})
}

// A release behind a primer does what any release does, on all servers and with all of
// what can happen to a command.
func TestAReleaseBehindAPrimer(t *testing.T) {
	handsOnTwice := func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		for i := range 20 { // in a Cluster, keys of several nodes
			key := "key" + strconv.Itoa(i)
			a.handsOn(sv, key, b)
			a.handsOn(sv, key, b)
		}
	}
	onEachServer(t, handsOnTwice)
	for _, variable := range []string{"ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			handsOnTwice(t, onServer(t, redistest.Option(t, variable)))
		})
	}
	t.Run("the server has forgotten its scripts", func(t *testing.T) {
		t.Parallel()
		sv := ownServer(t)
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.handsOn(sv, "key", b)
		give, takers := a.holds(sv, "key", b, 1)
		sv.Do(t, "SCRIPT", "FLUSH")
		a.gives(give, true)
		b.take("key", takers)
	})
}
