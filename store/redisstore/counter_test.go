// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// The last token matters only while the clock is behind it. So the counter or the vacancy that has
// it lives until the clock has been past it for the counter's TTL, whichever script wrote it, and no
// longer.
func TestACounterOutlivesItsNumber(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		const ttl, ahead = 10 * time.Minute, 20 * time.Hour
		c := join(t, sv.store(t, WithCounterTTL(ttl)))
		check := func(what string) {
			t.Helper()
			kind := byte('f')
			digits := sv.Do(t, "GET", sv.redisKey(what, kind))
			if digits == "" {
				kind = 'l'
				digits = sv.Do(t, "GET", sv.redisKey(what, kind))
			}
			last, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				t.Fatalf("%s: got %q, want a counter or a vacancy", what, digits)
			}
			want := max(time.Duration(last-sv.clock(t))*time.Microsecond, 0) + ttl
			if got := sv.pttl(t, what, kind); got > want+time.Second || got < want-time.Minute { // the machine may be busy
				t.Errorf("%s: TTL of %c: got %v, want %v", what, kind, got, want)
			}
		}
		advance := func(key string) int64 {
			last := sv.clock(t) + ahead.Microseconds()
			sv.Do(t, "SET", sv.redisKey(key, 'f'), strconv.FormatInt(last, 10), "PX", "1000000")
			return last
		}

		token := c.Hold("given back", "a").Token
		c.release(store.ReleaseRequest{Key: "given back", Owner: "a", Token: token})
		check("given back")
		c.Hold("taken", "a")
		c.Wait("taken", "b")
		check("taken")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "taken", Owner: "a"})
		check("taken")

		advance("read ahead")
		c.Want(read("read ahead", "a"), store.Granted)
		check("read ahead")
		c.release(store.ReleaseRequest{Key: "read ahead", Owner: "a"})
		check("read ahead")

		advance("taken ahead")
		c.Hold("taken ahead", "a")
		check("taken ahead")
		c.Hold("queued ahead", "a")
		advance("queued ahead")
		c.Wait("queued ahead", "b")
		check("queued ahead")
		for what, q := range map[string]store.ReleaseRequest{
			"released ahead":  {},
			"kept back ahead": {HoldBack: long},
			"asked ahead":     {Uncertain: true},
		} {
			token := c.Hold(what, "a").Token
			q.Key, q.Owner, q.Token = what, "a", token+ahead.Microseconds()
			c.release(q)
			check(what)
		}
		c.Hold("given back once queued for", "a")
		c.release(store.ReleaseRequest{Key: "given back once queued for", Owner: "a", Token: advance("given back once queued for")})
		check("given back once queued for")
		token = c.Hold("renewed ahead", "a").Token
		if got := c.renew(store.RenewRequest{Key: "renewed ahead", Owner: "a", TTL: long, Token: token + ahead.Microseconds()}); got.Err != nil {
			t.Fatal(got.Err)
		}
		check("renewed ahead")

		q := redistest.Request("forced", "a")
		q.TTL = ahead
		c.Want(q, store.Granted)
		c.force("forced")
		check("forced")
	})
}

// The counter has the token of a share, unless that is the clock's time and the request for the share has noted the clock.
func TestTheCounterHasWhatTheEpochDoesNotNote(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		check := func(key string, token int64) {
			t.Helper()
			want := strconv.FormatInt(token, 10)
			if token == 0 {
				want = ""
			}
			if got := sv.Do(t, "GET", sv.redisKey(key, 'f')); got != want {
				t.Errorf("%s: got the counter %q, want %q", key, got, want)
			}
		}
		c.Want(read("clock", "a"), store.Granted)
		check("clock", 0)
		sv.Pass(time.Millisecond)
		c.Want(read("clock", "b"), store.Granted)
		check("clock", 0)
		c.release(store.ReleaseRequest{Key: "clock", Owner: "a"})
		check("clock", 0)

		shown := c.Want(read("odd", "a"), store.Granted).Token + time.Second.Microseconds()
		c.Want(read("odd", "b"), store.Granted)
		group := strings.Fields(sv.Do(t, "GET", sv.redisKey("odd", 'l')))
		group[2] = strconv.FormatInt(shown, 10)
		sv.Do(t, "SET", sv.redisKey("odd", 'l'), strings.Join(group, " "), "KEEPTTL")
		c.release(store.ReleaseRequest{Key: "odd", Owner: "a"})
		check("odd", shown)

		sv.Do(t, "SET", sv.redisKey("ahead", 'f'), strconv.FormatInt(sv.clock(t)+time.Hour.Microseconds(), 10), "PX", "1000000")
		check("ahead", c.Want(read("ahead", "a"), store.Granted).Token)

		c.Want(read("ahead of readers", "a"), store.Granted)
		most := sv.clock(t) + time.Hour.Microseconds()
		sv.Do(t, "SET", sv.redisKey("ahead of readers", 'f'), strconv.FormatInt(most, 10), "PX", "1000000")
		if got := c.Want(read("ahead of readers", "b"), store.Granted).Token; got <= most {
			t.Errorf("a reader beside another: got the number %d, want more than the counter's %d", got, most)
		}

		held := c.Hold("handoff", "w")
		c.Want(read("handoff", "a"), store.Waiting)
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "handoff", Owner: "w", Token: held.Token})
		check("handoff", c.Want(read("handoff", "a"), store.Granted).Token)

		held = c.Hold("downgrade", "w")
		rest := store.ReleaseRequest{Key: "downgrade", Owner: "w", Token: held.Token, Rest: &store.Share{Mode: store.Shared}}
		check("downgrade", c.session.Release(t.Context(), []store.ReleaseRequest{rest})[0].Grant.Token)
	})
}
