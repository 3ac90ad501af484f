// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// What lock.lua does when no shortcut can be taken.

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
