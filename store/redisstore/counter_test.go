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

// A counter matters only while the clock is behind it. So it lives until the clock has been past
// it for the counter's TTL, whichever script wrote it, and no longer.
func TestACounterOutlivesItsNumber(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		const ttl, ahead = 10 * time.Minute, 20 * time.Hour
		c := join(t, sv.store(t, WithCounterTTL(ttl)))
		check := func(what string) {
			t.Helper()
			until := time.Duration(sv.Number(t, "GET", sv.redisKey(what, 'f'))-sv.clock(t)) * time.Microsecond
			want := max(until, 0) + ttl
			if got := sv.pttl(t, what, 'f'); got > want+time.Second || got < want-time.Minute { // the machine may be busy
				t.Errorf("%s: TTL of the counter: got %v, want %v", what, got, want)
			}
		}
		advance := func(key string) int64 {
			last := sv.clock(t) + ahead.Microseconds()
			sv.Do(t, "SET", sv.redisKey(key, 'f'), strconv.FormatInt(last, 10), "PX", "1000000")
			return last
		}

		c.Hold("taken", "a")
		check("taken")
		c.Wait("taken", "b")
		check("taken")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "taken", Owner: "a"})
		check("taken")

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
		token := c.Hold("renewed ahead", "a").Token
		if got := c.renew(store.RenewRequest{Key: "renewed ahead", Owner: "a", TTL: long, Token: token + ahead.Microseconds()}); got.Err != nil {
			t.Fatal(got.Err)
		}
		check("renewed ahead")

		q := redistest.Request("forced", "a")
		q.TTL = ahead
		c.Want(q, store.Granted)
		if held, err := c.session.Force(t.Context(), "forced", 0); err != nil || !held {
			t.Fatalf("Force: got %v, %v", held, err)
		}
		check("forced")
	})
}

func TestCounterTTLHasBounds(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{0, -1, time.Minute - 1, 30*24*time.Hour + 1} {
		if _, err := newSettings([]Option{WithCounterTTL(ttl)}); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%v: got %v, want ErrInvalidOption", ttl, err)
		}
	}
	if s, err := newSettings(nil); err != nil || s.counterTTL != DefaultCounterTTL {
		t.Errorf("without the option: got %v, %v, want %v", s.counterTTL, err, DefaultCounterTTL)
	}
}
