// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// pttl is the TTL of one of a lock's Redis keys, or negative.
func (sv *server) pttl(t testing.TB, key string, kind byte) time.Duration {
	t.Helper()
	return time.Duration(sv.number(t, "PTTL", sv.redisKey(key, kind))) * time.Millisecond
}

// clock is the server's time in microseconds.
func (sv *server) clock(t testing.TB) int64 {
	t.Helper()
	fields := strings.Fields(strings.Trim(sv.do(t, "TIME"), "[]"))
	seconds, _ := strconv.ParseInt(fields[0], 10, 64)
	micros, _ := strconv.ParseInt(fields[1], 10, 64)
	return seconds*1e6 + micros
}

func TestTokensAreTheClockOrTheCounter(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		before := sv.clock(t)
		got := c.hold("key", "a")
		if after := sv.clock(t); got.First < before || got.First > after || !got.SparePerMicrosecond {
			t.Errorf("grant: got %+v, want a token from %d to %d, from the clock", got.Grant, before, after)
		}
		if stored := sv.number(t, "GET", sv.redisKey("key", 'f')); stored != got.First {
			t.Errorf("counter: got %d, want %d", stored, got.First)
		}

		// A counter ahead of the clock wins, in all its digits, and does not
		// promise numbers that the clock has not reached.
		ahead := before + int64(time.Hour/time.Microsecond)
		for i, owner := range []string{"b", "c"} {
			c.release(asynclock.ReleaseRequest{Key: "key", Owner: string("ab"[i]), Token: ahead + int64(i)})
			next := c.hold("key", owner)
			if want := ahead + int64(i) + 1; next.First != want || next.SparePerMicrosecond {
				t.Errorf("grant after %d was used: got %+v, want token %d, not from the clock", want-1, next.Grant, want)
			}
		}

		// Without the counter the clock is the floor.
		sv.do(t, "DEL", sv.redisKey("key", 'f'), sv.redisKey("key", 'l'))
		sv.pass(time.Millisecond)
		if again := c.hold("key", "d"); again.First <= got.First {
			t.Errorf("token after the counter was lost: got %d, want more than %d", again.First, got.First)
		}
	})
}

func TestARepeatedAcquireOnlyExtends(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.hold("key", "a")

		late := request("key", "a")
		late.TTL = time.Second
		again := c.want(late, asynclock.Granted)
		if again.Grant != first.Grant {
			t.Errorf("repeated: got %+v, want %+v", again.Grant, first.Grant)
		}
		if left := sv.pttl(t, "key", 'l'); left < long/2 {
			t.Errorf("TTL after a late copy that asked for 1s: got %v, want about %v", left, long)
		}
		late.TTL = 2 * long
		c.want(late, asynclock.Granted)
		if left := sv.pttl(t, "key", 'l'); left <= long {
			t.Errorf("TTL after asking for %v: got %v, want more than %v", 2*long, left, long)
		}
	})
}

func TestEverythingHasATTL(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		c.wait("key", "b")
		c.wait("key", "c")
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "gone", Uncertain: true})
		want := map[byte][2]time.Duration{
			'l': {long / 2, long}, 'q': {23 * time.Hour, 24 * time.Hour}, 'w': {23 * time.Hour, 24 * time.Hour},
			'f': {23 * time.Hour, 24 * time.Hour}, 'x': {time.Minute, 2 * time.Minute},
		}
		for kind, bounds := range want {
			if got := sv.pttl(t, "key", kind); got < bounds[0] || got > bounds[1] {
				t.Errorf("TTL of %c: got %v, want %v to %v", kind, got, bounds[0], bounds[1])
			}
		}
		// A waiter keeps the queue alive by asking.
		sv.do(t, "PEXPIRE", sv.redisKey("key", 'q'), "60000")
		sv.do(t, "PEXPIRE", sv.redisKey("key", 'w'), "60000")
		c.wait("key", "c")
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
		a.hold("key", "a")
		a.wait("key", "b")
		sv.do(t, "DEL", sv.redisKey("key", 'l'))

		q := request("key", "c")
		q.Wait = false
		got := b.want(q, asynclock.Held)
		e := a.heard(asynclock.EventGrant, "b")
		if got.Token != e.Grant.First || got.Holder != "b at home" || got.Remaining <= 0 || got.Waiters != 0 {
			t.Errorf("Held: got %+v, want the new holder, b, with token %d", got, e.Grant.First)
		}
	})
}

func TestTryTakesAKeyForWhichOnlyTheDeadWait(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		dead := request("key", "b")
		dead.Liveness = 10 * time.Millisecond
		c.want(dead, asynclock.Waiting)
		sv.pass(50 * time.Millisecond)
		sv.do(t, "DEL", sv.redisKey("key", 'l'))

		q := request("key", "c")
		q.Wait = false
		if got := c.want(q, asynclock.Granted); got.Waiters != 0 {
			t.Errorf("Waiters: got %d, want 0", got.Waiters)
		}
		c.heardNothing(sv)
	})
}

func TestADroppedWaiterComesBackToItsPlace(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		first := c.wait("key", "b")
		second := c.wait("key", "c")
		if second.Ticket <= first.Ticket || second.Mark < second.Ticket {
			t.Fatalf("tickets: got %d, then %d with mark %d; want them to rise, and the mark not below", first.Ticket, second.Ticket, second.Mark)
		}
		sv.do(t, "ZREM", sv.redisKey("key", 'q'), "b")
		sv.do(t, "HDEL", sv.redisKey("key", 'w'), "b")

		q := request("key", "b")
		q.Ticket, q.QueueLimit = first.Ticket, 1 // the limit is for newcomers
		if got := c.want(q, asynclock.Waiting); got.Rank != 0 || got.Ticket != first.Ticket {
			t.Errorf("back again: got rank %d, ticket %d; want 0, %d", got.Rank, got.Ticket, first.Ticket)
		}

		// Likewise if the key is free by then, and others are in the queue.
		sv.do(t, "ZREM", sv.redisKey("key", 'q'), "b")
		sv.do(t, "HDEL", sv.redisKey("key", 'w'), "b")
		sv.do(t, "DEL", sv.redisKey("key", 'l'))
		if got := c.want(q, asynclock.Granted); got.Waiters != 1 || got.First <= second.Mark {
			t.Errorf("grant: got %+v, want 1 waiter and a token above %d", got, second.Mark)
		}
		c.heardNothing(sv)
	})
}

func TestALaterWaiterLetsTheFirstGo(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.hold("key", "a")
		a.wait("key", "b")
		q := request("key", "c")
		q.Ticket = b.wait("key", "c").Ticket
		sv.do(t, "DEL", sv.redisKey("key", 'l')) // the holder died
		got := b.want(q, asynclock.Waiting)
		e := a.heard(asynclock.EventGrant, "b")
		if got.Rank != 0 || got.Mark < e.Grant.First {
			t.Errorf("second in the queue: got rank %d, mark %d; want 0 and at least %d", got.Rank, got.Mark, e.Grant.First)
		}
		if left := sv.pttl(t, "key", 'l'); left > grant || left <= 0 {
			t.Errorf("TTL of a grant by message: got %v, want at most %v", left, grant)
		}
	})
}

func TestQueueLimit(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		q := request("key", "b")
		q.QueueLimit = 2
		q.Liveness = time.Second
		c.want(q, asynclock.Waiting)
		q.Owner = "c"
		q.Liveness = long
		c.want(q, asynclock.Waiting)
		c.want(q, asynclock.Waiting) // who is in the queue may stay
		q.Owner = "d"
		if got := c.want(q, asynclock.Full); got.Waiters != 2 {
			t.Errorf("Full: got %d waiters, want 2", got.Waiters)
		}
		// The dead make room.
		sv.pass(1500 * time.Millisecond)
		if got := c.want(q, asynclock.Waiting); got.Rank != 1 {
			t.Errorf("rank behind c: got %d, want 1", got.Rank)
		}
	})
}

func TestTheHolderIsToldOfTheFirstWaiter(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		q := request("key", "a")
		q.WatchContention = true
		a.want(q, asynclock.Granted)
		b.wait("key", "b")
		a.heard(asynclock.EventContended, "a")
		b.wait("key", "b")
		b.wait("key", "c")
		a.heardNothing(sv)

		// Who did not ask is not told. The flag is the request's, also for those
		// who come to hold by a message.
		b.release(asynclock.ReleaseRequest{Key: "key", Owner: "c"})
		a.release(asynclock.ReleaseRequest{Key: "key", Owner: "a"})
		b.heard(asynclock.EventGrant, "b")
		q.Owner = "d"
		a.want(q, asynclock.Waiting)
		b.heardNothing(sv)
		b.release(asynclock.ReleaseRequest{Key: "key", Owner: "b"})
		a.heard(asynclock.EventGrant, "d")
		b.wait("key", "e")
		a.heard(asynclock.EventContended, "d")
	})
}

func TestOwnersAreComparedWhole(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		q := request("key", "a.c")
		q.Holder = "x abc %w+ - y" // looks like fields, and like owners
		c.want(q, asynclock.Granted)
		for _, owner := range []string{"abc", "a%.c", ".*", "%S+", "a.", "a.c.", "%w+", "[a]", "x", "y"} {
			if got := c.release(asynclock.ReleaseRequest{Key: "key", Owner: owner, Token: 1}); got.WasHeld {
				t.Fatalf("Release by %q of what \"a.c\" holds: got WasHeld true, want false", owner)
			}
			if err := c.renew(asynclock.RenewRequest{Key: "key", Owner: owner, TTL: long}).Err; err == nil {
				t.Fatalf("Renew by %q of what \"a.c\" holds: got no error, want one", owner)
			}
		}
		if info := c.inspect("key"); info.Holder != q.Holder || !info.Held {
			t.Errorf("Inspect: got %+v, want it held by %q", info, q.Holder)
		}
	})
}
