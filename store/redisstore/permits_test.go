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

// The token that others see is that of the latest grant, also if its holder has left.
func TestTheNewestHolderOfPermitsLeaves(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.Want(permits("key", "first", 1, 3), store.Granted)
		second := c.Want(permits("key", "second", 1, 3), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "second"})
		if got := c.Want(tryOf(permits("key", "large", 3, 3)), store.Held); got.HolderToken != second.Token {
			t.Errorf("HolderToken: got %d, want %d", got.HolderToken, second.Token)
		}
		third := c.Want(permits("key", "third", 1, 3), store.Granted)
		var other *store.OtherHolderError
		for _, token := range []int64{first.Token, second.Token} {
			if held, err := c.session.Force(t.Context(), "key", token); !errors.As(err, &other) || other.Info.Token != third.Token {
				t.Errorf("Force with a token before the latest grant: got %v, %v; want an OtherHolderError with token %d", held, err, third.Token)
			}
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "third"})
		if held, err := c.session.Force(t.Context(), "key", c.Inspect("key").Token); !held || err != nil {
			t.Errorf("Force with the token that Inspect shows: got %v, %v; want true", held, err)
		}
	})
}

// Each number of permits on which somebody counts is the smallest in its turn.
func TestTheSmallestLimitsLeaveOneByOne(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		limits := []int32{19, 17, 18, 17, 16, 19, 18}
		for i, limit := range limits {
			c.Want(permits("key", strconv.Itoa(i), 1, limit), store.Granted)
		}
		inForce := func(want int) {
			t.Helper()
			if got := c.Want(tryOf(permits("key", "large", 20, 20)), store.Held); got.Limit != int32(want) {
				t.Errorf("limit in force: got %d, want %d", got.Limit, want)
			}
			if info := c.Inspect("key"); info.Limit != want {
				t.Errorf("Inspect: got limit %d, want %d", info.Limit, want)
			}
		}
		inForce(16)
		for _, leaves := range []struct {
			owner string
			want  int
		}{{"4", 17}, {"1", 17}, {"0", 17}, {"3", 18}, {"6", 18}, {"2", 19}} {
			c.release(store.ReleaseRequest{Key: "key", Owner: leaves.owner})
			inForce(leaves.want)
		}
		if got := sv.Number(t, "EXISTS", sv.redisKey("key", 'c')); got != 0 {
			t.Error("larger limits, when all count on one: got some, want none")
		}
	})
}

// The larger limits last as long as the group, which only a renewal may have prolonged.
func TestLargerLimitsLastAsLongAsTheGroup(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Want(permits("key", "a", 1, 5), store.Granted)
		c.Want(permits("key", "b", 1, 6), store.Granted)
		last := func(when string) {
			t.Helper()
			if members, larger := sv.pttl(t, "key", 's'), sv.pttl(t, "key", 'c'); larger < members-time.Second || larger > members+time.Second {
				t.Errorf("%s: TTL of the larger limits: got %v, want that of the members, %v", when, larger, members)
			}
		}
		last("granted")
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: 3 * long, Share: store.Share{Mode: store.Permits, Weight: 1, Limit: 5}}).Err; err != nil {
			t.Fatal(err)
		}
		last("renewed")
	})
}

// A group has no limits of an earlier one.
func TestLimitsOfAnEarlierGroupDoNotCount(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Want(permits("key", "a", 1, 5), store.Granted)
		c.Want(permits("key", "b", 1, 6), store.Granted)
		sv.Do(t, "DEL", sv.redisKey("key", 'l')) // its TTL ends a second before theirs
		c.Want(permits("key", "c", 1, 8), store.Granted)
		c.Want(permits("key", "d", 1, 9), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "c"})
		if got := c.Want(permits("key", "e", 7, 9), store.Granted); got.Limit != 9 {
			t.Errorf("limit in force: got %d, want 9", got.Limit)
		}
	})
}

// Inspect changes nothing, so it subtracts what those have whose time is over.
func TestTheDeadHaveNothingThatInspectShows(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	for i, limit := range []int32{5, 6, 5, 7, 8} {
		q := permits("key", strconv.Itoa(i), 1, limit)
		if i < 3 {
			q.TTL = time.Second
		}
		c.Want(q, store.Granted)
	}
	if info := c.Inspect("key"); info.Used != 5 || info.Limit != 5 || len(info.Holders) != 5 {
		t.Errorf("Inspect: got %+v, want 5 of 5 permits out", info)
	}
	sv.Pass(2 * time.Second)
	if info := c.Inspect("key"); info.Used != 2 || info.Limit != 7 || len(info.Holders) != 2 || info.Holder != "2 holders of 2 permits" {
		t.Errorf("Inspect: got %+v, want 2 of 7 permits out", info)
	}
}

// A part that is given up and held back is a member, which counts on the same limit.
func TestALimitLeavesWithTheLastPartThatIsHeldBack(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	c.Want(permits("key", "modest", 2, 3), store.Granted)
	c.Want(permits("key", "other", 1, 9), store.Granted)
	c.release(store.ReleaseRequest{Key: "key", Owner: "modest", HoldBack: 10 * time.Second, Rest: &store.Share{Mode: store.Permits, Weight: 1, Limit: 3}})
	c.release(store.ReleaseRequest{Key: "key", Owner: "modest"})
	c.Want(tryOf(permits("key", "third", 2, 12)), store.Held)
	sv.Pass(11 * time.Second)
	if got := c.Want(tryOf(permits("key", "third", 2, 12)), store.Granted); got.Limit != 9 {
		t.Errorf("Limit: got %d, want 9", got.Limit)
	}
}

// A release serves each waiter for whom there are permits, in one step. A waiter behind a part that is held back is
// told when it becomes the first, because it has to know when that part ends.
func TestAReleaseOfPermitsReachesSeveralWaiters(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b, c := join(t, st), join(t, st), join(t, st)
		queue := func(c *client, owner string) {
			c.waitForMessage("another "+owner, owner) // the client has a channel now
			c.Want(permits("key", owner, 1, 2), store.Waiting)
		}
		for _, other := range []string{"b1", "c1", "b2", "c2"} {
			a.Hold("another "+other, "of-a")
		}
		a.Want(permits("key", "both", 2, 2), store.Granted)
		queue(b, "b1")
		queue(c, "c1")
		a.release(store.ReleaseRequest{Key: "key", Owner: "both"})
		b.Heard(store.EventGrant, "b1")
		c.Heard(store.EventGrant, "c1")

		queue(b, "b2")
		queue(c, "c2")
		b.release(store.ReleaseRequest{Key: "key", Owner: "b1", HoldBack: time.Hour})
		b.Heard(store.EventWake, "b2")
		c.release(store.ReleaseRequest{Key: "key", Owner: "c1"})
		b.Heard(store.EventGrant, "b2")
		c.Heard(store.EventWake, "c2")
	})
}

// A step drops 100 of the dead at most. The last waiter is told to ask, and its request serves those behind the dead.
func TestWhoComesBehindManyDeadIsToldToAsk(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	a.Want(permits("key", "both", 2, 2), store.Granted)
	b.Want(permits("key", "first", 1, 2), store.Waiting)
	for i := range 150 {
		dies := permits("key", strconv.Itoa(i), 1, 2)
		dies.WaiterTTL = time.Second
		b.Want(dies, store.Waiting)
	}
	b.Want(permits("key", "second", 1, 2), store.Waiting)
	sv.Pass(2 * time.Second)
	a.release(store.ReleaseRequest{Key: "key", Owner: "both"})
	b.Heard(store.EventGrant, "first")
	b.Heard(store.EventWake, "second")
	b.Want(permits("key", "second", 1, 2), store.Granted)
	b.heardNothing(sv)
}

// A request to queue again is part of a release, which is not done twice. So it is sent by itself if very many have died.
func TestWhoQueuesAgainBehindManyDeadIsServed(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	for key, again := range map[string]store.AcquireRequest{"key": redistest.Request("key", "b"), "permits": permits("permits", "b", 1, 2)} {
		crowd{waiters: 250, deadWaiters: 250}.make(t, sv, key)
		sv.Do(t, "DEL", sv.redisKey(key, 'l'))
		got := c.releaseAgain(store.ReleaseRequest{Key: key, Owner: "a", Requeue: &again})
		if got.WasHeld || got.Requeue == nil || got.Requeue.Status != store.Granted {
			t.Errorf("Release of %q: got %+v with %+v, want a grant", key, got, got.Requeue)
		}
	}
}
