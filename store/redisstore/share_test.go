// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// read is redistest.Request for a reader, and permits for permits.
func read(key, owner string) store.AcquireRequest {
	q := redistest.Request(key, owner)
	q.Share = store.Share{Mode: store.Shared}
	return q
}

func permits(key, owner string, weight, limit int32) store.AcquireRequest {
	q := redistest.Request(key, owner)
	q.Share = store.Share{Mode: store.Permits, Weight: weight, Limit: limit}
	return q
}

// tryOf is a request without waiting.
func tryOf(q store.AcquireRequest) store.AcquireRequest {
	q.Wait = false
	return q
}

// scriptsRun is how many scripts the server runs for a call.
func (sv *server) scriptsRun(t *testing.T, call func()) int {
	t.Helper()
	return sv.commandsRun(t, "evalsha", call)
}

// commandsRun is how many commands of this name the server runs for a call, also in scripts.
func (sv *server) commandsRun(t *testing.T, name string, call func()) int {
	t.Helper()
	count := func() (n int) {
		for line := range strings.Lines(sv.Do(t, "INFO", "commandstats")) {
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
				n, _ = strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
			}
		}
		return n
	}
	before := count()
	call()
	return count() - before
}

// Only the first request that meets a group is sent twice.
func TestAKeyThatIsSharedIsRemembered(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	try := tryOf(redistest.Request("key", "writer"))
	run := func(what string, want int, call func()) {
		t.Helper()
		if got := sv.scriptsRun(t, call); got != want {
			t.Errorf("%s: got %d scripts, want %d", what, got, want)
		}
	}
	b.Want(redistest.Request("another key", "b"), store.Granted) // so that no script has to be sent whole
	a.Want(read("key", "a"), store.Granted)
	b.Want(try, store.Held)
	other := join(t, st)
	run("a reader", 1, func() { a.Want(read("key", "a2"), store.Granted) })
	run("a writer's first try", 2, func() { other.Want(try, store.Held) })
	run("a writer's next try", 1, func() { other.Want(try, store.Held) })
	run("a reader's release", 1, func() { a.release(store.ReleaseRequest{Key: "key", Owner: "a"}) })
	a.release(store.ReleaseRequest{Key: "key", Owner: "a2"})
	var token int64
	run("a writer who finds nobody", 1, func() { token = other.Want(try, store.Granted).Token })
	run("its release", 1, func() { other.release(store.ReleaseRequest{Key: "key", Owner: "writer", Token: token}) })
	writer := other.Hold("key", "w")
	a.Want(read("key", "r"), store.Waiting)
	run("a writer's release to a reader", 2, func() {
		other.release(store.ReleaseRequest{Key: "key", Owner: "w", Token: writer.Token})
	})
	a.Heard(store.EventGrant, "r")
}

// A group's Redis keys last as long as its last member, and the members never end before the lock.
func TestAGroupLastsAsLongAsItsLastMember(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		check := func(when string, want time.Duration) {
			t.Helper()
			lock, members, details := sv.pttl(t, "key", 'l'), sv.pttl(t, "key", 's'), sv.pttl(t, "key", 'h')
			if lock <= want-5*time.Second || lock > want {
				t.Errorf("%s: TTL of the lock: got %v, want %v", when, lock, want)
			}
			if members <= lock || members > lock+2*time.Second || details <= lock || details > lock+2*time.Second {
				t.Errorf("%s: TTLs of members and details: got %v and %v, want a little more than %v", when, members, details, lock)
			}
		}
		longest := read("key", "longest")
		longest.TTL = 2 * long
		twoReaders := func(by string) {
			c.Want(longest, store.Granted)
			c.Want(read("key", "a"), store.Granted)
			check("two readers, by "+by, 2*long)
			c.release(store.ReleaseRequest{Key: "key", Owner: "longest"})
			check("the one with the longer TTL has left, by "+by, long)
		}
		twoReaders("shortcuts")
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		sv.withoutShortcuts(t, "key")
		twoReaders("the rest")
		renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: 3 * long, Share: longest.Share}
		c.wantRenewal(renewal, nil)
		check("renewed", 3*long)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		for _, kind := range []byte("sh") {
			if sv.Number(t, "EXISTS", sv.redisKey("key", kind)) != 0 {
				t.Errorf("Redis key %c after the last member has left: got one, want none", kind)
			}
		}
	})
}

// withoutShortcuts has the scripts for shares take none of the key, as long as a withdrawn owner is remembered.
func (sv *server) withoutShortcuts(t testing.TB, key string) {
	t.Helper()
	sv.Do(t, "ZADD", sv.redisKey(key, 'x'), strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10), "withdrawn")
}

// A group that ended by its TTL leaves members behind, which are no part of the next one.
func TestAGroupThatEndedIsNotContinued(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Want(permits("key", "dead", 2, 2), store.Granted)
		sv.Do(t, "DEL", sv.redisKey("key", 'l')) // its TTL ends a second before theirs
		c.Want(permits("key", "a", 2, 2), store.Granted)
		if info := c.Inspect("key"); info.Used != 2 || len(info.Holders) != 1 {
			t.Errorf("Inspect: got %+v, want one holder of 2 permits", info)
		}
	})
}

// A step grants 64. The next head is told to ask, and its request serves the next.
func TestAStepGrantsNotAllAtOnce(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	h := a.Hold("key", "writer")
	const readers = 70
	for i := range readers {
		q := read("key", fmt.Sprint("r", i))
		q.WaiterTTL = 10 * time.Minute // a busy machine takes a while for so many
		b.Want(q, store.Waiting)
	}
	a.release(store.ReleaseRequest{Key: "key", Owner: "writer", Token: h.Token})
	for i := range 64 {
		b.Heard(store.EventGrant, fmt.Sprint("r", i))
	}
	b.Heard(store.EventWake, "r64")
	if info := a.Inspect("key"); info.Waiters != readers-64 {
		t.Errorf("waiters: got %d, want %d", info.Waiters, readers-64)
	}
	b.Want(read("key", "r64"), store.Granted)
	for i := 65; i < readers; i++ {
		b.Heard(store.EventGrant, fmt.Sprint("r", i))
	}
	b.heardNothing(sv)
}

// Somebody that nobody can reach is passed over only if its turn has come.
func TestTheUnreachableAreNotOvertaken(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	st := sv.store(t)
	a := join(t, st)
	a.Want(read("key", "a"), store.Granted)
	sv.queueAndLeave(t, "key", "writer")
	a.Want(read("key", "b"), store.Waiting)
	a.Want(tryOf(read("key", "c")), store.Held)
	a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
	a.Heard(store.EventGrant, "b")
}

// A reader's release looks at the epoch, and a writer's never gives readers the key by its shortcut.
func TestTheShortcutOfReleaseHandsNoShareOn(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		for _, q := range []store.AcquireRequest{read("key", "r"), permits("other", "p", 1, 2)} {
			h := a.Hold(q.Key, "writer")
			b.Want(q, store.Waiting)
			sv.Pass(time.Millisecond)
			a.release(store.ReleaseRequest{Key: q.Key, Owner: "writer", Token: h.Token})
			b.Heard(store.EventGrant, q.Owner)
			if info := b.Inspect(q.Key); info.Mode != q.Share.Mode || len(info.Holders) != 1 {
				t.Errorf("Inspect: got %+v, want it held in mode %d", info, q.Share.Mode)
			}
		}
	})
}

// The whole release knows that behind a waiter that has died the next one shares the key.
func TestAReleaseHandsAShareToWhoeverWaitsBehindTheDead(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		h := a.Hold("key", "writer")
		dies := redistest.Request("key", "dies")
		dies.WaiterTTL = time.Millisecond
		b.Want(dies, store.Waiting)
		b.Want(read("key", "r"), store.Waiting)
		sv.Pass(time.Second)
		a.release(store.ReleaseRequest{Key: "key", Owner: "writer", Token: h.Token})
		b.Heard(store.EventGrant, "r")
		b.Want(read("key", "r2"), store.Granted)
	})
}

// Before whom asks wait one that wants too much by now, and very many who have died. Each of them leaves, and the rest
// of them in another step. Then the key is shared.
func TestAShareBehindTheDeadAndOneThatWantsTooMuch(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for i, q := range []store.AcquireRequest{read("readers", "x"), permits("permits", "x", 1, 5)} {
			h := redistest.Request(q.Key, "holder")
			h.TTL = time.Minute
			c.Want(h, store.Granted)
			c.Want(permits(q.Key, "modest-no-more", 5, 5), store.Waiting)
			queueDead(c, permits(q.Key, "", 1, 5), 150)
			c.setLimit(t, q.Key, 2)
			sv.expire(t, q.Key)
			got := c.Want(q, store.Granted)
			if info := c.Inspect(q.Key); info.Mode != q.Share.Mode || i == 0 && got.Fence == 0 || i == 1 && got.Weight != 1 {
				t.Errorf("got %+v with fence %d and weight %d, want it in mode %d", info, got.Fence, got.Weight, q.Share.Mode)
			}
			q.Owner = "second"
			c.Want(q, store.Granted)
		}
	})
}

// queueDead queues so many of these requests, which die soon.
func queueDead(c *client, q store.AcquireRequest, n int) {
	c.T.Helper()
	for i := range n {
		q.Owner, q.WaiterTTL = fmt.Sprint("dies", i), time.Millisecond
		c.Want(q, store.Waiting)
	}
}

// A request that is refused also drops those whose time is over, and counts no longer what they had.
func TestPermitsOfTheDeadAreCountedAlsoByWhatIsRefused(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	dies := permits("key", "dies", 2, 3)
	dies.TTL = time.Second
	c.Want(dies, store.Granted)
	c.Want(permits("key", "a", 1, 3), store.Granted)
	sv.Pass(2 * time.Second)
	rest := store.ReleaseRequest{Key: "key", Owner: "a", Rest: &store.Share{Mode: store.Shared}}
	if got := c.session.Release(t.Context(), []store.ReleaseRequest{rest})[0].Err; !errors.Is(got, store.ErrInvalidOption) {
		t.Errorf("Release with a Rest of something else: got %v, want ErrInvalidOption", got)
	}
	c.Want(permits("key", "b", 2, 3), store.Granted)
}

func TestTheSmallestLimitLeavesWithItsHolder(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	c.Want(permits("key", "modest", 1, 2), store.Granted)
	c.Want(permits("key", "a", 1, 5), store.Granted)
	c.Want(tryOf(permits("key", "b", 2, 5)), store.Held)
	c.release(store.ReleaseRequest{Key: "key", Owner: "modest"})
	c.Want(tryOf(permits("key", "b", 2, 5)), store.Granted)
}

func TestARenewalBringsNoMemberBack(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	dies := read("key", "dies")
	dies.TTL = time.Second
	c.Want(dies, store.Granted)
	c.Want(read("key", "a"), store.Granted)
	sv.Pass(2 * time.Second)
	c.wantRenewal(store.RenewRequest{Key: "key", Owner: "dies", TTL: long, Share: dies.Share}, store.ErrExpired) // a reader whose time is over
}

// A request that takes nothing itself gives the key to the share that is next.
func TestAShareIsGrantedByWhoeverFindsTheKeyFree(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Hold("key", "dies")
		a.Want(read("key", "r"), store.Waiting)
		sv.expire(t, "key")
		b.Want(tryOf(redistest.Request("key", "writer")), store.Held)
		a.Heard(store.EventGrant, "r")
		b.Want(read("key", "r2"), store.Granted)
	})
}

// At most 128 members are told in a step.
func TestMembersAreTold(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	for i := range 130 {
		q := read("key", fmt.Sprintf("r%03d", i))
		q.NotifyQueued, q.NotifyRequests = true, i >= 120
		q.TTL = long + time.Duration(i)*time.Millisecond
		a.Want(q, store.Granted)
	}
	for range 2 {
		b.Want(redistest.Request("key", "writer"), store.Waiting)
	}
	heard := make(map[store.EventKind]int)
	end := time.After(20 * time.Second)
	for range 10 + 128 + 10 {
		select {
		case e := <-a.Events:
			heard[e.Kind]++
		case <-end:
		}
	}
	if heard[store.EventQueued] != 128 || heard[store.EventRequested] != 20 {
		t.Errorf("events of the members: got %v, want 128 once, and 10 twice", heard)
	}
	a.heardNothing(sv)
}

func TestAServerOutOfMemoryAdmitsNobodyAndGoesOn(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	a.Want(permits("key", "a", 2, 2), store.Granted)
	a.Hold("written", "a")
	b.Want(permits("key", "b", 1, 2), store.Waiting)
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	for _, q := range []store.AcquireRequest{read("free", "c"), permits("free", "c", 1, 2)} {
		if got := a.Acquire(q).Err; !errors.Is(got, store.ErrUnreachable) {
			t.Errorf("Acquire of a share: got %v, want ErrUnreachable", got)
		}
	}
	if sv.Number(t, "EXISTS", sv.redisKey("free", 'l'), sv.redisKey("free", 's'), sv.redisKey("free", 'h')) != 0 {
		t.Error("a refused request has left something behind")
	}
	share := store.Share{Mode: store.Permits, Weight: 1, Limit: 2}
	a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: 2 * long, Share: store.Share{Mode: store.Permits, Weight: 2, Limit: 2}}, nil)
	for _, r := range []store.ReleaseRequest{
		{Key: "key", Owner: "a", Rest: &share},
		{Key: "written", Owner: "a", Rest: &store.Share{Mode: store.Shared}},
		{Key: "key", Owner: "a"},
	} {
		if !a.release(r).WasHeld {
			t.Errorf("Release %+v: got WasHeld false, want true", r)
		}
	}
	b.Heard(store.EventGrant, "b")
}

// Those whose time is over leave also if some count on a larger limit than others.
func TestAServerOutOfMemoryDropsTheDead(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	c.Want(permits("key", "a", 1, 5), store.Granted)
	for i := range 3 {
		q := permits("key", strconv.Itoa(i), 1, 6)
		if i == 0 {
			q.TTL = time.Second
		}
		c.Want(q, store.Granted)
	}
	sv.Pass(1100 * time.Millisecond)
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	c.releaseHeld(store.ReleaseRequest{Key: "key", Owner: "a"})
	if info := c.Inspect("key"); info.Used != 2 || info.Limit != 6 {
		t.Errorf("Inspect: got %d of %d permits, want 2 of 6", info.Used, info.Limit)
	}
}

// The permits of a member that can't be read are counted as before, also when its time is over.
func TestAMemberThatIsDamagedStaysCounted(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	damaged := permits("key", "a", 1, 3)
	damaged.TTL = time.Second
	c.Want(damaged, store.Granted)
	c.Want(permits("key", "b", 1, 2), store.Granted) // its limit leaves with it
	c.Want(tryOf(permits("key", "c", 1, 3)), store.Held)
	sv.Do(t, "HSET", sv.redisKey("key", 'h'), "a", "damaged")
	c.release(store.ReleaseRequest{Key: "key", Owner: "b"})
	c.Want(permits("key", "c", 2, 4), store.Granted)
	sv.Pass(2 * time.Second)
	c.Want(tryOf(permits("key", "d", 1, 4)), store.Held)
}

func TestNothingIsWrittenAnewOverWhatIsHeldBack(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Want(permits("key", "a", 1, 2), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", HoldBack: long})
		c.wantRenewal(store.RenewRequest{Key: "key", Owner: "w", TTL: long}, store.ErrExpired) // a writer
		c.Want(permits("key", "b", 1, 2), store.Granted)
		c.wantRenewal(store.RenewRequest{Key: "key", Owner: "w", TTL: long}, store.ErrStolen) // a writer beside a holder of permits
	})
}

// An owner that keeps all of its key back from others, or a part, is nobody's any more.
func TestAShareIsHeldBack(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t))
	c.Want(read("key", "a"), store.Granted)
	c.Want(read("key", "b"), store.Granted)
	c.release(store.ReleaseRequest{Key: "key", Owner: "a", HoldBack: 10 * time.Second})
	c.release(store.ReleaseRequest{Key: "key", Owner: "b"})
	c.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Share: store.Share{Mode: store.Shared}}, store.ErrExpired)
	c.wantRenewal(store.RenewRequest{Key: "key", Owner: "w", TTL: long}, store.ErrExpired) // a writer beside what is held back
	got := c.Want(redistest.Request("key", "w"), store.Waiting)
	if got.Remaining <= 9*time.Second || got.Remaining > 10*time.Second || got.Holder != "a at home" {
		t.Errorf("Waiting: got %+v, want a's description and 10 s", got)
	}
	sv.Pass(11 * time.Second)
	c.Want(redistest.Request("key", "w"), store.Granted)
}

// A release of a share tells the script whether it is clean. One that is uncertain is not, whatever
// the client says.
func TestACleanReleaseOfAShareSaysSo(t *testing.T) {
	for want, q := range map[string]store.ReleaseRequest{
		"0":   {Key: "key", Owner: me, Token: 1},
		"1":   {Key: "key", Owner: me, Token: 1, Uncertain: true, Clean: true},
		clean: {Key: "key", Owner: me, Token: 1, Clean: true},
	} {
		var c call
		if err := c.releaseShares("test", &q, noAddress, guard{}); err != nil {
			t.Fatal(err)
		}
		if _, args := c.words(); args[3] != want {
			t.Errorf("%+v is sent as %q, want %q", q, args[3], want)
		}
	}
}
