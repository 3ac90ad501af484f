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

// What lock.lua does when no shortcut can be taken.

func TestTheClockIsTheFloorOfEveryToken(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	c := join(t, sv.store(t)).silence()
	first := c.Hold("key", "a").Token
	c.Wait("key", "b")
	sv.Pass(10 * time.Second)
	sv.Do(t, "DEL", sv.redisKey("key", 'f')) // as after FLUSHALL, or a failover to a replica that missed it
	c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: first})
	if got, want := c.Want(redistest.Request("key", "b"), store.Granted).Token, first+10_000_000; got < want {
		t.Errorf("token 10s after %d: got %d, want at least %d", first, got, want)
	}
}

func TestOnlyItsOwnerReleasesAKey(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		for _, waiters := range []int{0, 1} {
			if waiters == 1 {
				c.Wait("key", "b")
			}
			sv.Pass(time.Millisecond)
			// Tokens are no secret.
			if c.release(store.ReleaseRequest{Key: "key", Owner: "thief", Token: token}).WasHeld {
				t.Errorf("release by a stranger, %d waiters: got WasHeld true, want false", waiters)
			}
			if info := c.Inspect("key"); info.Holder != "a at home" || info.Token != token || info.Waiters != waiters {
				t.Errorf("after a release by a stranger: got %+v, want it held by a, with %d waiters", info, waiters)
			}
		}
	})
}

func TestTTLsOfGrants(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		c.Wait("key", "b")
		c.Wait("key", "c")
		c.Wait("key", "d")
		sv.expire(t, "key")

		token := c.Want(redistest.Request("key", "b"), store.Granted).Token
		if got := sv.pttl(t, "key", 'l'); got <= grant || got > long {
			t.Errorf("TTL for one that asked: got %v, want %v", got, long)
		}
		// Uncertain, so that no shortcut is taken.
		c.release(store.ReleaseRequest{Key: "key", Owner: "b", Token: token, Uncertain: true})
		if e := c.Heard(store.EventGrant, "c"); e.Waiters != 1 || e.GrantTTL != grant {
			t.Errorf("EventGrant: got %+v, want TTL %v and 1 waiter", e, grant)
		}
		if got := sv.pttl(t, "key", 'l'); got <= grant/2 || got > grant {
			t.Errorf("TTL for one that was told: got %v, want %v", got, grant)
		}

		token = c.Inspect("key").Token
		c.release(store.ReleaseRequest{Key: "key", Owner: "c", Token: token, HoldBack: long})
		if got := sv.pttl(t, "key", 'l'); got <= grant || got > long {
			t.Errorf("TTL of a key kept back: got %v, want %v", got, long)
		}
	})
}

// A server of its own: Lua in Redis prints 14 digits of a number, and that of
// miniredis prints them all.
func TestNumbersKeepAllTheirDigits(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	check := func(when string, token int64) {
		t.Helper()
		record, _, _ := strings.Cut(sv.Do(t, "GET", sv.redisKey("key", 'l')), " ")
		counter := sv.Do(t, "GET", sv.redisKey("key", 'f'))
		if want := strconv.FormatInt(token, 10); record != want || counter != want {
			t.Errorf("%s: got token %s in the record and %s in the counter, want %s", when, record, counter, want)
		}
	}
	token := c.Hold("key", "holder").Token
	sv.Do(t, "SET", sv.redisKey("key", 'f'), strconv.FormatInt(token, 10))
	check("taken", token)

	// Far ahead of the clock, so that numbers follow each other.
	sv.Do(t, "SET", sv.redisKey("key", 'f'), "4000000000000011")
	request := func(when string, tickets ...int64) {
		t.Helper()
		for rank, owner := range []string{"c", "b", "a"} { // their order by ticket, not by name
			q := redistest.Request("key", owner)
			q.Ticket = tickets[rank]
			if got, want := c.Want(q, store.Waiting), int64(4000000000000012+rank); got.Rank != rank || got.Ticket != want {
				t.Errorf("%s %s: got rank %d and ticket %d, want rank %d and ticket %d", owner, when, got.Rank, got.Ticket, rank, want)
			}
		}
	}
	request("asks", 0, 0, 0)
	request("asks again", 0, 0, 0)
	sv.Do(t, "DEL", sv.redisKey("key", 'q'), sv.redisKey("key", 'w'))
	request("comes back with its ticket", 4000000000000012, 4000000000000013, 4000000000000014)
	request("asks again", 0, 0, 0)
	c.release(store.ReleaseRequest{Key: "key", Owner: "holder"})
	check("handed on", c.Heard(store.EventGrant, "c").Grant.Token)
}

func TestVeryManyDeadWaitersLeaveAtOnce(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL")) // for miniredis this is minutes of work
	c := join(t, sv.store(t))
	c.Hold("key", "a")
	const dead = 20_000 // more than Lua's stack takes
	queue := []string{"ZADD", sv.redisKey("key", 'q')}
	entries := []string{"HSET", sv.redisKey("key", 'w')}
	for i := range dead {
		owner := fmt.Sprint("dead-", i)
		queue = append(queue, "1", owner)
		entries = append(entries, owner, "1 - 10000 - somebody")
	}
	sv.Do(t, queue...)
	sv.Do(t, entries...)
	c.Wait("key", "b")
	if !c.release(store.ReleaseRequest{Key: "key", Owner: "a"}).WasHeld {
		t.Error("Release: got WasHeld false, want true")
	}
	if e := c.Heard(store.EventGrant, "b"); e.Waiters != 0 {
		t.Errorf("EventGrant: got %+v, want no waiters", e)
	}
	if got := sv.Number(t, "HLEN", sv.redisKey("key", 'w')); got != 0 {
		t.Errorf("waiters' entries: got %d, want 0", got)
	}
}

func TestRenewRaisesTheCounterAndLowersNothing(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		for _, r := range []struct {
			when           string
			used, counter  int64 // before
			record, raised int64 // after
		}{
			{"as it was", token, token, token, token},
			{"a token was used", token + 5, token, token + 5, token + 5},
			{"tickets were taken since", token + 7, token + 100, token + 7, token + 100},
			{"an earlier token, with fewer digits", 9, token + 100, token + 7, token + 100},
		} {
			sv.Do(t, "SET", sv.redisKey("key", 'f'), strconv.FormatInt(r.counter, 10))
			if got := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: r.used}); got.Err != nil {
				t.Fatalf("%s: got %v, want no error", r.when, got.Err)
			}
			if got := c.Inspect("key").Token; got != r.record {
				t.Errorf("%s: token: got %d, want %d", r.when, got, r.record)
			}
			if got := sv.Number(t, "GET", sv.redisKey("key", 'f')); got != r.raised {
				t.Errorf("%s: counter: got %d, want %d", r.when, got, r.raised)
			}
		}
	})
}
