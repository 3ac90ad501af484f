// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// The common cases are written twice, in release_fast.lua, in acquire.lua before any
// function definition, and in lock.lua. These tests reach the former.

func TestShortcutsLeaveNothingForEver(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		check := func(when string, kind byte, low, high time.Duration) {
			t.Helper()
			if got := sv.pttl(t, "key", kind); got < low || got > high {
				t.Errorf("TTL of %c after %s: got %v, want %v to %v", kind, when, got, low, high)
			}
		}
		token := c.Hold("key", "a").Token
		check("the first acquire", 'l', long/2, long)

		c.Wait("key", "b")
		c.Wait("key", "c")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		c.Heard(store.EventGrant, "b")
		check("a handoff", 'l', grant/2, grant)
		check("a handoff", 'f', 59*time.Minute, time.Hour+time.Second) // by the tickets
		if got := sv.Number(t, "HLEN", sv.redisKey("key", 'w')); got != 1 {
			t.Errorf("waiters' entries after a handoff: got %d, want that of c only", got)
		}
		if got := sv.Number(t, "ZCARD", sv.redisKey("key", 'q')); got != 1 {
			t.Errorf("queue after a handoff: got %d, want c only", got)
		}

		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "key", Owner: "b"})
		if e := c.Heard(store.EventGrant, "c"); e.Waiters != 0 {
			t.Errorf("EventGrant for the last: got %+v, want no waiters", e)
		}
		for _, kind := range []byte("qw") {
			if n := sv.Number(t, "EXISTS", sv.redisKey("key", kind)); n != 0 {
				t.Errorf("Redis key %c after a handoff to the last: got it there, want it gone", kind)
			}
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "c"})
		check("a release to nobody", 'l', 59*time.Minute, time.Hour+time.Second)
	})
}

// An omission of a shortcut shows only later, when another owner queues.
func TestShortcutsRememberWhatTheyGave(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		ticket := func(owner string) {
			t.Helper()
			q := redistest.Request("key", owner)
			q.NotifyQueued = true
			if got, want := sv.Number(t, "GET", sv.redisKey("key", 'f')), c.Want(q, store.Waiting).Ticket; got > want {
				t.Errorf("counter: got %d before the ticket %d of %s, want it no larger", got, want, owner)
			} else if got = sv.Number(t, "GET", sv.redisKey("key", 'f')); got != want {
				t.Errorf("counter: got %d after the ticket %d of %s", got, want, owner)
			}
		}
		token := c.Hold("key", "a").Token
		sv.Do(t, "SET", sv.redisKey("key", 'f'), "0")
		ticket("b")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		c.Heard(store.EventGrant, "b")
		ticket("c")
		c.Heard(store.EventQueued, "b")
	})
}

// A release that a shortcut can't do must not take it.
func TestShortcutsAreForPlainReleases(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for _, waiting := range []bool{false, true} {
			key := map[bool]string{false: "alone", true: "with-a-waiter"}[waiting]
			release := store.ReleaseRequest{Key: key, Owner: key + ".a", Token: c.Hold(key, key+".a").Token}
			if waiting {
				c.Wait(key, key+".b")
			}
			sv.Pass(time.Millisecond)
			release.Uncertain = true
			if !c.release(release).WasHeld {
				t.Errorf("%s: got WasHeld false, want true", key)
			}
			if waiting {
				c.Heard(store.EventGrant, key+".b")
			}
			c.Want(redistest.Request(key, key+".a"), store.Withdrawn) // the late copy

			kept := store.ReleaseRequest{Key: key + ".kept", Owner: "a", HoldBack: long}
			kept.Token = c.Hold(kept.Key, "a").Token
			if waiting {
				c.Wait(kept.Key, "b")
			}
			sv.Pass(time.Millisecond)
			c.release(kept)
			if info := c.Inspect(kept.Key); !info.Held || info.Holder != "a at home" {
				t.Errorf("%s: got %+v, want it kept back", kept.Key, info)
			}
			if waiting {
				c.Heard(store.EventWake, "b")
			}
			c.heardNothing(sv)
		}
	})
}

// The record may know a larger token than the counter: long after the grant the
// counter has expired, and renewals by the token's first user leave it so. If
// the clock was ahead at the grant, only that token keeps the next one larger.
func TestAPlainReleaseForgetsNoToken(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for name, counter := range map[string]func(used int64) []string{
			"lost": func(int64) []string { return []string{"DEL", sv.redisKey("lost", 'f')} },
			"older": func(used int64) []string {
				return []string{"SET", sv.redisKey("older", 'f'), strconv.FormatInt(used-1, 10)}
			},
			"of fewer digits": func(int64) []string { return []string{"SET", sv.redisKey("of fewer digits", 'f'), "999999999999999"} },
			"as it was": func(used int64) []string {
				return []string{"SET", sv.redisKey("as it was", 'f'), strconv.FormatInt(used, 10)}
			},
			"larger, by some tickets": func(used int64) []string {
				return []string{"SET", sv.redisKey("larger, by some tickets", 'f'), strconv.FormatInt(used+9, 10)}
			},
		} {
			used := c.Hold(name, "a").Token + 1e12
			c.renew(store.RenewRequest{Key: name, Owner: "a", TTL: long, Token: used})
			sv.Do(t, counter(used)...)
			if !c.release(store.ReleaseRequest{Key: name, Owner: "a", Token: used}).WasHeld {
				t.Errorf("counter %s: Release: got WasHeld false, want true", name)
			}
			if info := c.Inspect(name); info.Held {
				t.Errorf("counter %s: after the release: got %+v, want it free", name, info)
			}
			if got := c.Hold(name, "b").Token; got <= used {
				t.Errorf("counter %s: token after %d: got %d, want a larger one", name, used, got)
			}
		}
	})
}

// A client that hands its key on among its own waiters may be ahead of the
// server's clock: by its tokens, or because the clock went back.
func TestTheNextTokenIsLargerThanAnyUsed(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		const ahead = 1_000_000_000 // µs
		used := c.Hold("used", "a").Token + ahead
		c.Wait("used", "b")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "used", Owner: "a", Token: used})
		if got := c.Heard(store.EventGrant, "b").Grant.Token; got <= used {
			t.Errorf("token after %d was used: got %d, want a larger one", used, got)
		}

		given := c.Hold("given", "a").Token + ahead
		c.Wait("given", "b")
		sv.Pass(time.Millisecond)
		sv.Do(t, "SET", sv.redisKey("given", 'f'), strconv.FormatInt(given, 10))
		c.release(store.ReleaseRequest{Key: "given", Owner: "a", Token: given - ahead})
		if got := c.Heard(store.EventGrant, "b").Grant.Token; got <= given {
			t.Errorf("token after %d was given: got %d, want a larger one", given, got)
		}
	})
}

func TestTheShortcutOfReleaseSkipsTheUnreachable(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		c := join(t, st)
		token := c.Hold("key", "a").Token
		sv.queueAndLeave(t, "key", "lost")
		c.Wait("key", "b")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		if got := c.Inspect("key").Holder; got != "b at home" {
			t.Fatalf("holder: got %q, want b, since nobody hears for lost", got)
		}
		c.Heard(store.EventGrant, "b")
	})
}
