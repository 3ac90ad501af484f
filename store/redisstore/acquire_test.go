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

// A waiter that was dropped takes a free key, as those who wait came later.
func TestADroppedWaiterIsAheadOfWhoCameLater(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		q := redistest.Request("key", "b")
		q.Ticket = c.Wait("key", "b").Ticket
		mark := c.Wait("key", "c").Mark
		sv.Do(t, "ZREM", sv.redisKey("key", 'q'), "b")
		sv.Do(t, "HDEL", sv.redisKey("key", 'w'), "b")
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))
		if got := c.Want(q, store.Granted); got.Waiters != 1 || got.Token <= mark {
			t.Errorf("grant: got %+v, want 1 waiter and a token above %d", got, mark)
		}
		c.heardNothing(sv)
	})
}
