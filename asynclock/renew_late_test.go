// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The stories that follow are about renewals that are answered late, on a link
// that is merely slow.

// slowly makes each renewal take that long, half of it on its way back.
func slowly(w *world, trip time.Duration) (stop func()) {
	return w.store.Every(asynclocktest.Renew.Any, asynclocktest.Slow(trip/2, trip/2))
}

// A round trip of a fifth of the TTL is short enough, whatever the TTL.
func TestRoundTripOfAFifthOfTheTTLLosesNoLease(t *testing.T) {
	for _, ttl := range []time.Duration{
		asynclock.MinTTL, 300 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second,
		15 * time.Second, time.Minute, time.Hour,
	} {
		scene(t, ttl.String(), func(w *world) {
			c := w.client(asynclock.WithTTL(ttl))
			leases := []*asynclock.Lease{lock(w, c, "first")}
			w.pass(ttl / 30)
			leases = append(leases, lock(w, c, "second"))
			slowly(w, ttl/5)
			for range 10 {
				w.pass(ttl / 2)
				for _, l := range leases {
					wantValid(w, l)
				}
			}
			unlock(w, leases[0])
			unlock(w, leases[1])
			w.pass(ttl)
			w.wantUnused()
		})
	}
}

// Two thousand leases are renewed in many calls, of which each is as slow.
func TestRoundTripOfAFifthOfTheTTLLosesNoneOfManyLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := holdKeys(t, altered{Store: memstore.New(), renew: (&distant{takes: ttl / 5}).renew}, 2000)
		time.Sleep(10 * ttl)
		wantAll(t, leases)
	})
}

// The answer counts from the sending of its own request, when the store was
// silent to all that followed.
func TestLateAnswerCountsFromItsSending(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Every(asynclocktest.Renew.On("key"), asynclocktest.Hang)
		w.store.Next(asynclocktest.Renew.On("key"), asynclocktest.Slow(0, ttl/5))
		w.pass(ttl/3 + ttl/5)
		renewals := w.store.Calls(asynclocktest.Renew.On("key"))
		if len(renewals) < 2 {
			w.Fatalf("sent %d renewals, want another after the first one's timeout", len(renewals))
		}
		wantTime(w, "trust deadline", l.Deadline(), renewals[0].At.Add(trusted(ttl)))
		w.pass(time.Until(renewals[0].At.Add(trusted(ttl))))
		wantError(w, l.Err(), asynclock.ErrNotRenewed, asynclock.ErrUnreachable)
	})
}

// An answer after the trust deadline revives nothing.
func TestLateAnswerAfterTheTrustDeadlineRevivesNothing(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Every(asynclocktest.Renew.On("key"), asynclocktest.Slow(0, ttl))
		w.pass(2 * ttl)
		wantError(w, l.Err(), asynclock.ErrNotRenewed)
	})
}

func TestLateAnswerThatTheKeyIsLostEndsTheLease(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		w.store.Every(asynclocktest.Renew.On("key"), asynclocktest.Hang)
		w.store.Next(asynclocktest.Renew.On("key"), asynclocktest.Slow(2*time.Second, 0))
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		w.pass(ttl/3 + 2*time.Second)
		wantError(w, l.Err(), asynclock.ErrExpired)
	})
}

// A store that hangs is asked ever less often.
func TestRenewalsBecomeMorePatient(t *testing.T) {
	story(t, func(w *world) {
		const ttl = 5 * time.Minute
		lock(w, w.client(asynclock.WithTTL(ttl)), "key")
		w.store.Every(asynclocktest.Renew.On("key"), asynclocktest.Hang)
		w.pass(ttl/3 + time.Minute)
		renewals := w.store.Calls(asynclocktest.Renew.On("key"))
		if len(renewals) < 5 {
			w.Fatalf("sent %d renewals, want at least 5", len(renewals))
		}
		for i := range 4 {
			if gap, want := renewals[i+1].At.Sub(renewals[i].At), time.Second<<i; gap < want {
				w.Errorf("renewal %d came %v after the one before, want at least %v", i+1, gap, want)
			}
		}
	})
}

// A store that hangs has a bounded number of calls under way.
func TestLateRenewalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		d := &distant{takes: 2 * ttl}
		leases := holdKeys(t, altered{Store: memstore.New(), renew: d.renew}, 64*100, asynclock.WithTTL(ttl))
		time.Sleep(ttl)
		for _, l := range leases {
			if err := l.Err(); errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, but no context of the holder's has ended", err)
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		// Nine calls for each class of timeouts: a second, two seconds, up to five and more, and less than a second
		// shortly before the deadline.
		if d.atOnce > 12*9 || d.atOnce < 9 {
			t.Errorf("got %d calls at once, want some tens", d.atOnce)
		}
	})
}

// A lease that is renewed by hand waits for a slow answer as long as a waiter
// would.
func TestRenewByHandOnASlowLink(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithRenewal(false))
		slowly(w, ttl/5)
		sent := time.Now()
		if err := l.Renew(w.Context(), ttl); err != nil {
			w.Fatal(err)
		}
		wantTime(w, "trust deadline", l.Deadline(), sent.Add(trusted(ttl)))
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Hang)
		sent = time.Now()
		wantError(w, l.Renew(w.Context(), ttl), asynclock.ErrOutcomeUnknown)
		wantAround(w, "end", time.Now(), sent.Add(patience))
	})
}

// A client that is too far away for its TTL says so, and not over and over.
func TestRoundTripTooLongForTheTTLIsLogged(t *testing.T) {
	const words = "take too long"
	count := func(log *notebook) (n int) {
		for _, line := range log.lines() {
			if strings.Contains(line, words) {
				n++
			}
		}
		return n
	}
	scene(t, "renewals", func(w *world) {
		var log notebook
		l := lock(w, w.client(log.option(slog.LevelWarn)), "key")
		slowly(w, ttl/4)
		w.pass(59 * time.Minute)
		log.wantLine(w, "level=WARN", words, "round_trip="+(ttl/4).String(), "ttl="+ttl.String())
		if n := count(&log); n != 1 {
			w.Errorf("got %d warnings in an hour, want one", n)
		}
		w.pass(time.Hour)
		if n := count(&log); n != 2 {
			w.Errorf("got %d warnings in two hours, want two", n)
		}
		wantValid(w, l)
	})
	scene(t, "acquisitions", func(w *world) {
		var log notebook
		c := w.client(log.option(slog.LevelWarn), asynclock.WithTTL(asynclock.MinTTL))
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Slow(12*time.Millisecond, 12*time.Millisecond))
		for range 10 {
			unlock(w, lock(w, c, "key"))
		}
		w.wait()
		if n := count(&log); n != 1 {
			w.Errorf("got %d warnings, want one", n)
		}
	})
	scene(t, "not of one, nor of many that are fast enough", func(w *world) {
		var log notebook
		c := w.client(log.option(slog.LevelWarn))
		for i := range 100 {
			lock(w, c, fmt.Sprint("key ", i))
		}
		for range 10 {
			w.store.Next(asynclocktest.Renew.Any, asynclocktest.Slow(ttl/8, ttl/8))
			w.pass(ttl)
		}
		slowly(w, ttl/5)
		w.pass(10 * ttl)
		if n := count(&log); n != 0 {
			w.Errorf("got %d warnings, want none", n)
		}
	})
}
