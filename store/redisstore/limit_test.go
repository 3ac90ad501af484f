// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func (c *client) setLimit(t *testing.T, key string, limit int32) {
	t.Helper()
	if err := c.session.SetLimit(t.Context(), key, limit); err != nil {
		t.Fatalf("SetLimit(%q, %d): got %v, want no error", key, limit, err)
	}
}

// The limit is data: nothing ends it but SetLimit.
func TestALimitHasNoTTL(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		name := sv.redisKey("key", 'm')
		c.setLimit(t, "key", 3)
		c.Want(permits("key", "a", 2, 5), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		if got := sv.Number(t, "TTL", name); got != -1 {
			t.Errorf("TTL of the limit: got %d, want none", got)
		}
		c.setLimit(t, "key", 0)
		if got := sv.Number(t, "EXISTS", name); got != 0 {
			t.Error("a limit that was forgotten: got it, want it deleted")
		}
	})
}

// Nothing is granted in the grace, so a larger limit lets nobody in before its end. A
// request for too much is refused at once.
func TestALimitInTheGraceGrantsNothing(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.setLimit(t, "key", 2)
		a.Want(permits("key", "a", 2, 5), store.Granted)
		b.Want(permits("key", "b", 1, 5), store.Waiting)
		promote()
		a.setLimit(t, "key", 3)
		b.heardNothing(sv)
		if got := a.Want(permits("key", "a", 2, 5), store.Waiting); got.Limit != 3 || got.Used != 2 || got.Grace == 0 {
			t.Errorf("request of a holder in the grace: got %+v, want the end of the grace, and 2 permits out of 3", got)
		}
		b.Want(permits("key", "large", 4, 5), store.TooMuch)
		b.Want(permits("key", "b", 4, 5), store.TooMuch)
		if info := a.Inspect("key"); info.Waiters != 0 || info.Used != 2 || info.Limit != 3 {
			t.Errorf("Inspect: got %+v, want 2 of 3 permits and nobody who waits", info)
		}
		b.Want(permits("key", "c", 1, 5), store.Waiting)
		sv.endGrace(t, "key")
		b.Want(permits("key", "c", 1, 5), store.Granted)
	})
}

// Only the requests of those who share a key know of limits.
func TestAMutexNamesNoLimit(t *testing.T) {
	t.Parallel()
	q := redistest.Request("key", "a")
	calls := map[string]func(*call){
		"acquire":      func(c *call) { must(c.acquire("p", &q, noAddress, guard{})) },
		"fast release": func(c *call) { c.releaseFast("p", &store.ReleaseRequest{Key: "key", Owner: "a"}, long) },
		"release":      func(c *call) { must(c.release("p", &store.ReleaseRequest{Key: "key", Owner: "a"}, noAddress, guard{})) },
		"inspect":      func(c *call) { c.inspect("p", "key", page{shown: shown}, false) },
		"share": func(c *call) {
			r := read("key", "a")
			must(c.acquireShares("p", &r, noAddress, guard{}))
		},
	}
	for name, put := range calls {
		var c call
		put(&c)
		keys, _ := c.words()
		if got := slices.ContainsFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":m") }); got != (name == "share") {
			t.Errorf("%s: got keys %q, want the limit's for shares only", name, keys)
		}
	}
}

func TestALimitOfNoKeyIsRefused(t *testing.T) {
	t.Parallel()
	c := join(t, onMiniredis(t).store(t))
	for _, key := range []string{"", "\xff", strings.Repeat("k", store.MaxKeyLen+1)} {
		if err := c.session.SetLimit(t.Context(), key, 1); !errors.Is(err, store.ErrInvalidKey) {
			t.Errorf("SetLimit(%.10q): got %v, want ErrInvalidKey", key, err)
		}
	}
}

func TestAWithdrawnOwnerIsNotToldThatItRequestsTooMuch(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.setLimit(t, "key", 3)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Uncertain: true})
		c.Want(permits("key", "a", 4, 5), store.Withdrawn)
	})
}

// Nobody knows when a part that is held back ends, except who was the first at that time.
func TestWhoIsBehindOneAboveTheLimitIsTold(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.setLimit(t, "key", 5)
		a.Want(permits("key", "a", 3, 5), store.Granted)
		a.release(store.ReleaseRequest{Key: "key", Owner: "a", HoldBack: long})
		b.Want(permits("key", "first", 3, 5), store.Waiting)
		a.Want(permits("key", "second", 3, 5), store.Waiting)
		b.Want(permits("key", "first", 6, 6), store.TooMuch)
		a.Heard(store.EventWake, "second")
	})
}

// A step of the server takes little time, however many waiters request too much.
func TestAStepLetsNotAllLeaveAtOnce(t *testing.T) {
	const waiting = 70
	st := onMiniredis(t).store(t)
	a, b := join(t, st), join(t, st)
	a.Want(permits("key", "a", 1, 5), store.Granted)
	for i := range waiting {
		b.Want(permits("key", strconv.Itoa(i), 5, 5), store.Waiting)
	}
	a.setLimit(t, "key", 3)
	if got, want := a.Inspect("key").Waiters, waiting-64; got != want {
		t.Errorf("waiters after a limit below what they request: got %d, want %d", got, want)
	}
	for i := range 65 { // the last of them is asked to go on
		b.Heard(store.EventWake, strconv.Itoa(i))
	}
	b.Want(permits("key", "64", 5, 5), store.TooMuch)
	if got := a.Inspect("key").Waiters; got != 0 {
		t.Errorf("waiters after the request of the first: got %d, want none", got)
	}
}

// A waiter may change its weight while it waits. If the new one is above the limit, it blocks nobody any
// more.
func TestARefusedWaiterServesThoseBehind(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.setLimit(t, "key", 3)
		a.Want(permits("key", "a", 2, 5), store.Granted)
		a.Want(permits("key", "first", 2, 5), store.Waiting)
		b.Want(permits("key", "second", 1, 5), store.Waiting)
		a.Want(permits("key", "first", 4, 5), store.TooMuch)
		b.Heard(store.EventGrant, "second")
	})
}

// A request of a holder finds what it has, whatever it says of its share.
func TestWhoHasAllOfTheKeyIsNotRefused(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.setLimit(t, "key", 1)
		c.Hold("key", "a")
		c.Want(permits("key", "a", 2, 5), store.Granted)
	})
}
