// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// pttl is the TTL of one of a lock's Redis keys, or negative.
func (sv *server) pttl(t testing.TB, key string, kind byte) time.Duration {
	t.Helper()
	return time.Duration(sv.Number(t, "PTTL", sv.redisKey(key, kind))) * time.Millisecond
}

// expire ends a holding as its TTL does, without the waiting.
func (sv *server) expire(t testing.TB, key string) {
	t.Helper()
	sv.Do(t, "PEXPIRE", sv.redisKey(key, 'l'), "1")
	sv.Pass(5 * time.Millisecond)
}

// clock is the server's time in microseconds.
func (sv *server) clock(t testing.TB) int64 {
	t.Helper()
	fields := strings.Fields(strings.Trim(sv.Do(t, "TIME"), "[]"))
	seconds, _ := strconv.ParseInt(fields[0], 10, 64)
	micros, _ := strconv.ParseInt(fields[1], 10, 64)
	return seconds*1e6 + micros
}

func TestTokensAreTheClockOrTheCounter(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		before := sv.clock(t)
		got := c.Hold("key", "a")
		if after := sv.clock(t); got.Token < before || got.Token > after || !got.TokensFollowClock {
			t.Errorf("grant: got %+v, want a token from %d to %d, from the clock", got.Grant, before, after)
		}
		if n := sv.Number(t, "EXISTS", sv.redisKey("key", 'f')); n != 0 {
			t.Error("counter: got one, want none, since the record has the token")
		}

		// A counter ahead of the clock wins, in all its digits, and does not
		// promise numbers that the clock has not reached.
		ahead := before + int64(time.Hour/time.Microsecond)
		for i, owner := range []string{"b", "c"} {
			c.release(store.ReleaseRequest{Key: "key", Owner: string("ab"[i]), Token: ahead + int64(i)})
			next := c.Hold("key", owner)
			if want := ahead + int64(i) + 1; next.Token != want || next.TokensFollowClock {
				t.Errorf("grant after %d was used: got %+v, want token %d, not from the clock", want-1, next.Grant, want)
			}
		}

		// Without the counter the clock is the floor.
		sv.Do(t, "DEL", sv.redisKey("key", 'f'), sv.redisKey("key", 'l'))
		sv.Pass(time.Millisecond)
		if again := c.Hold("key", "d"); again.Token <= got.Token {
			t.Errorf("token after the counter was lost: got %d, want more than %d", again.Token, got.Token)
		}
	})
}

func TestARepeatedAcquireOnlyExtends(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.Hold("key", "a")

		late := redistest.Request("key", "a")
		late.TTL = time.Second
		again := c.Want(late, store.Granted)
		if again.Grant != first.Grant {
			t.Errorf("repeated: got %+v, want %+v", again.Grant, first.Grant)
		}
		if left := sv.pttl(t, "key", 'l'); left < long/2 {
			t.Errorf("TTL after a late copy that asked for 1s: got %v, want about %v", left, long)
		}
		late.TTL = 2 * long
		c.Want(late, store.Granted)
		if left := sv.pttl(t, "key", 'l'); left <= long {
			t.Errorf("TTL after asking for %v: got %v, want more than %v", 2*long, left, long)
		}
	})
}

func TestEverythingHasATTL(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		c.Wait("key", "b")
		c.Wait("key", "c")
		c.release(store.ReleaseRequest{Key: "key", Owner: "gone", Uncertain: true})
		want := map[byte][2]time.Duration{
			'l': {long / 2, long}, 'q': {23 * time.Hour, 24 * time.Hour}, 'w': {23 * time.Hour, 24 * time.Hour},
			'f': {59 * time.Minute, time.Hour + time.Second}, 'x': {time.Minute, 2 * time.Minute},
		}
		for kind, bounds := range want {
			if got := sv.pttl(t, "key", kind); got < bounds[0] || got > bounds[1] {
				t.Errorf("TTL of %c: got %v, want %v to %v", kind, got, bounds[0], bounds[1])
			}
		}
		// A waiter keeps the queue alive by asking.
		sv.Do(t, "PEXPIRE", sv.redisKey("key", 'q'), "60000")
		sv.Do(t, "PEXPIRE", sv.redisKey("key", 'w'), "60000")
		c.Wait("key", "c")
		for _, kind := range []byte("qw") {
			if got := sv.pttl(t, "key", kind); got < 23*time.Hour {
				t.Errorf("TTL of %c after a heartbeat: got %v, want 24h", kind, got)
			}
		}
	})
}

func TestNobodyOvertakesTheQueueOfAFreeKey(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Hold("key", "a")
		a.Wait("key", "b")
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))

		q := redistest.Request("key", "c")
		q.Wait = false
		got := b.Want(q, store.Held)
		e := a.Heard(store.EventGrant, "b")
		if got.HolderToken != e.Grant.Token || got.Holder != "b at home" || got.Remaining <= 0 || got.Waiters != 0 {
			t.Errorf("Held: got %+v, want the new holder, b, with token %d", got, e.Grant.Token)
		}
	})
}

func TestTryTakesAKeyForWhichOnlyTheDeadWait(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		dead := redistest.Request("key", "b")
		dead.WaiterTTL = 10 * time.Millisecond
		c.Want(dead, store.Waiting)
		sv.Pass(50 * time.Millisecond)
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))

		q := redistest.Request("key", "c")
		q.Wait = false
		if got := c.Want(q, store.Granted); got.Waiters != 0 {
			t.Errorf("Waiters: got %d, want 0", got.Waiters)
		}
		c.heardNothing(sv)
	})
}

func TestADroppedWaiterComesBackToItsPlace(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		first := c.Wait("key", "b")
		second := c.Wait("key", "c")
		if second.Ticket <= first.Ticket || second.Mark < second.Ticket {
			t.Fatalf("tickets: got %d, then %d with mark %d; want them to rise, and the mark not below", first.Ticket, second.Ticket, second.Mark)
		}
		sv.Do(t, "ZREM", sv.redisKey("key", 'q'), "b")
		sv.Do(t, "HDEL", sv.redisKey("key", 'w'), "b")

		q := redistest.Request("key", "b")
		q.Ticket, q.QueueLimit = first.Ticket, 1 // the limit is for newcomers
		if got := c.Want(q, store.Waiting); got.Rank != 0 || got.Ticket != first.Ticket {
			t.Errorf("back again: got rank %d, ticket %d; want 0, %d", got.Rank, got.Ticket, first.Ticket)
		}

		// Likewise if the key is free by then, and others are in the queue.
		sv.Do(t, "ZREM", sv.redisKey("key", 'q'), "b")
		sv.Do(t, "HDEL", sv.redisKey("key", 'w'), "b")
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))
		if got := c.Want(q, store.Granted); got.Waiters != 1 || got.Token <= second.Mark {
			t.Errorf("grant: got %+v, want 1 waiter and a token above %d", got, second.Mark)
		}
		c.heardNothing(sv)
	})
}

func TestALaterWaiterLetsTheFirstGo(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Hold("key", "a")
		a.Wait("key", "b")
		q := redistest.Request("key", "c")
		q.Ticket = b.Wait("key", "c").Ticket
		sv.Do(t, "DEL", sv.redisKey("key", 'l')) // the holder died
		got := b.Want(q, store.Waiting)
		e := a.Heard(store.EventGrant, "b")
		if got.Rank != 0 || got.Mark < e.Grant.Token {
			t.Errorf("second in the queue: got rank %d, mark %d; want 0 and at least %d", got.Rank, got.Mark, e.Grant.Token)
		}
		if left := sv.pttl(t, "key", 'l'); left > grant || left <= 0 {
			t.Errorf("TTL of a grant by message: got %v, want at most %v", left, grant)
		}
	})
}

func TestQueueLimit(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		q := redistest.Request("key", "b")
		q.QueueLimit = 2
		c.Want(q, store.Waiting)
		q.Owner = "c"
		c.Want(q, store.Waiting)
		c.Want(q, store.Waiting) // who is in the queue may stay
		q.Owner = "d"
		if got := c.Want(q, store.Full); got.Waiters != 2 {
			t.Errorf("Full: got %d waiters, want 2", got.Waiters)
		}
		// The dead make room. It asks for so short a life only now, after all that a busy
		// machine may take long for.
		dead := redistest.Request("key", "b")
		dead.WaiterTTL = 10 * time.Millisecond
		c.Want(dead, store.Waiting)
		sv.Pass(50 * time.Millisecond)
		if got := c.Want(q, store.Waiting); got.Rank != 1 {
			t.Errorf("rank behind c: got %d, want 1", got.Rank)
		}
	})
}

// The dead leave a full queue, behind however many of the living. A refused request does not
// walk through the queue each time.
func TestTheDeadMakeRoomWhereverTheyAre(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	c.Hold("key", "a")
	const alive, dead = 600, 5 // more than one look of the walk takes
	queue := []string{"ZADD", sv.redisKey("key", 'q')}
	entries := []string{"HSET", sv.redisKey("key", 'w')}
	for i := range alive + dead {
		deadline := "9999999999999"
		if i >= alive {
			deadline = "1"
		}
		owner := fmt.Sprint("waiter-", i)
		queue = append(queue, strconv.Itoa(i), owner)
		entries = append(entries, owner, deadline+" - 10000 - somebody")
	}
	sv.Do(t, queue...)
	sv.Do(t, entries...)
	q := redistest.Request("key", "newcomer")
	q.QueueLimit = alive + dead
	if got := c.Want(q, store.Waiting); got.Rank != alive {
		t.Errorf("rank of the newcomer: got %d, want %d", got.Rank, alive)
	}

	q.Owner, q.QueueLimit = "refused", alive+1
	time.Sleep(200 * time.Millisecond) // the pause after the first walk
	sv.Do(t, "CONFIG", "RESETSTAT")
	const refused = 50
	start := time.Now()
	for range refused {
		if got := c.Want(q, store.Full); got.Waiters != alive+1 {
			t.Errorf("Full: got %d waiters, want %d", got.Waiters, alive+1)
		}
	}
	const pages = 3 // of a walk
	walks := 1 + int(time.Since(start)/(alive/4*time.Millisecond))
	if looks := sv.calls(t, "hmget"); looks < pages || looks > walks*pages {
		t.Errorf("%d requests that were refused looked at %d pages of waiters, want %d walks of %d", refused, looks, walks, pages)
	}
	for _, kind := range []byte("qw") { // nothing is kept for ever
		if got := sv.pttl(t, "key", kind); got <= 0 {
			t.Errorf("TTL of %q: got %v, want one", kind, got)
		}
	}
}

func TestTheHolderIsToldOfTheFirstWaiter(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		q := redistest.Request("key", "a")
		q.NotifyQueued = true
		a.Want(q, store.Granted)
		b.Wait("key", "b")
		a.Heard(store.EventQueued, "a")
		b.Wait("key", "b")
		b.Wait("key", "c")
		a.heardNothing(sv)

		// A holder that did not request it is not notified. The flag is the request's, also
		// for an owner that is granted the key by a message.
		b.release(store.ReleaseRequest{Key: "key", Owner: "c"})
		a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		b.Heard(store.EventGrant, "b")
		q.Owner = "d"
		a.Want(q, store.Waiting)
		b.heardNothing(sv)
		b.release(store.ReleaseRequest{Key: "key", Owner: "b"})
		a.Heard(store.EventGrant, "d")
		b.Wait("key", "e")
		a.Heard(store.EventQueued, "d")
	})
}

func TestOwnersAreComparedWhole(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		q := redistest.Request("key", "a.c")
		q.Description = "x abc %w+ - y" // looks like fields, and like owners
		c.Want(q, store.Granted)
		for _, owner := range []string{"abc", "a%.c", ".*", "%S+", "a.", "a.c.", "%w+", "[a]", "x", "y"} {
			if got := c.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: 1}); got.WasHeld {
				t.Fatalf("Release by %q of what \"a.c\" holds: got WasHeld true, want false", owner)
			}
			if err := c.renew(store.RenewRequest{Key: "key", Owner: owner, TTL: long}).Err; err == nil {
				t.Fatalf("Renew by %q of what \"a.c\" holds: got no error, want one", owner)
			}
		}
		if info := c.Inspect("key"); info.Holder != q.Description || !info.Held {
			t.Errorf("Inspect: got %+v, want it held by %q", info, q.Description)
		}
	})
}
