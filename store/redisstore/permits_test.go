// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A release subtracts what the leaver had. It reads all members only if the smallest limit leaves.
func TestAReleaseOfPermitsReadsNotEveryMember(t *testing.T) {
	t.Parallel()
	const members, few = 300, 10
	sv := ownServer(t)
	c := join(t, sv.store(t))
	lasting := func(q store.AcquireRequest) store.AcquireRequest {
		q.TTL = time.Hour // a busy machine takes long for so many
		return q
	}
	sv.withoutShortcuts(t, "key")
	for i := range members {
		c.Want(lasting(permits("key", strconv.Itoa(i), 2, 1000)), store.Granted)
	}
	c.Want(lasting(permits("key", "modest", 1, 999)), store.Granted)
	leave := func(owner string, rest *store.Share) int {
		return sv.commandsRun(t, "hget", func() { c.release(store.ReleaseRequest{Key: "key", Owner: owner, Rest: rest}) })
	}
	wantRead := func(what string, got int, all bool) {
		t.Helper()
		if (got >= members-few) != all || !all && got > few {
			t.Errorf("%s: got %d members read, want all of them: %v", what, got, all)
		}
	}
	wantRead("a part", leave("5", &store.Share{Mode: store.Permits, Weight: 1, Limit: 1000}), false)
	wantRead("one of many", leave("7", nil), false)
	wantRead("the one with the smallest limit", leave("modest", nil), true)
	wantRead("the newest", leave(strconv.Itoa(members-1), nil), false)
	if info := c.Inspect("key"); info.Used != 2*(members-2)-1 || info.Limit != 1000 {
		t.Errorf("Inspect: got %d of %d permits, want %d of 1000", info.Used, info.Limit, 2*(members-2)-1)
	}
	free := int32(1000 - 2*(members-2) + 1)
	c.Want(tryOf(permits("key", "large", free+1, 1000)), store.Held)
	c.Want(tryOf(permits("key", "fits", free, 1000)), store.Granted)
}

// The token that others see is that of the newest who is still there.
func TestTheNewestHolderOfPermitsLeaves(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.Want(permits("key", "first", 1, 3), store.Granted)
		second := c.Want(permits("key", "second", 1, 3), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "second"})
		if got := c.Want(tryOf(permits("key", "large", 3, 3)), store.Held); got.HolderToken != first.Token {
			t.Errorf("HolderToken: got %d, want %d", got.HolderToken, first.Token)
		}
		third := c.Want(permits("key", "third", 1, 3), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "third"})
		var other *store.OtherHolderError
		for _, token := range []int64{second.Token, third.Token} {
			if held, err := c.session.Force(t.Context(), "key", token); !errors.As(err, &other) || other.Info.Token != first.Token {
				t.Errorf("Force with the token of one who has left: got %v, %v; want an OtherHolderError with token %d", held, err, first.Token)
			}
		}
		if held, err := c.session.Force(t.Context(), "key", first.Token); !held || err != nil {
			t.Errorf("Force with the token of who is left: got %v, %v; want true", held, err)
		}
	})
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
