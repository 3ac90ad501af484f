// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The stories of this file are about retained keys that the client loses.

// Nobody's lease is lost with it, and nobody is told; who wants the key asks the
// store.
func TestRetainedKeyThatIsLostIsNobodysLoss(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"by force": func(w *world) { w.force(w.client(), "key") },
		"to nobody": func(w *world) {
			if held, err := w.store.Expire(w.Context(), "key"); err != nil || !held {
				w.Fatalf("Expire: got %v, %v, want the key to have been held", held, err)
			}
			w.pass(ttl/3 + ttl/30) // a renewal finds out
		},
		"says the store": func(w *world) {
			owner := w.store.Calls(asynclocktest.Acquire.On("key"))[0].Owner
			w.store.Tell(0, store.Event{Kind: store.EventLost, Owner: owner, Err: asynclock.ErrExpired})
			w.session().Release(w.Context(), []store.ReleaseRequest{{Key: "key", Owner: owner}})
		},
	} {
		scene(t, name, func(w *world) {
			var log notebook
			c := w.retainer(log.option(slog.LevelInfo))
			before := w.retained(c)
			lose(w)
			w.wait()
			after := lock(w, c, "key")
			wantRising(w, before, after)
			w.wantAsked(2)
			unlock(w, after)
			w.wait()
			if text := log.String(); strings.Contains(text, "lost") {
				w.Errorf("the log tells of a loss:\n%s", text)
			}
		})
	}
}

// That another has what was still trusted is for operators to know, though no lease is
// lost.
func TestRetainedKeyThatWasStolenIsSaidInTheLog(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c, other := w.retainer(log.option(slog.LevelWarn)), w.client()
		w.retained(c)
		w.store.EveryEvent(asynclocktest.Kind(store.EventForced), asynclocktest.Drop)
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		theirs := lock(w, other, "key")
		w.pass(ttl/3 + ttl/30)
		if err := c.Close(w.Context()); err != nil { // it has written its log then
			w.Error(err)
		}
		if text := log.String(); !strings.Contains(text, "another has a key that was retained") {
			w.Errorf("got the log %q, want it to say that another has the key", text)
		}
		unlock(w, theirs)
	})
}

// When the store can't be reached, the key is anybody's once its trust has
// ended, and is not taken again shortly before.
func TestRetainedKeyIsNotTakenWithoutTrust(t *testing.T) {
	for _, early := range []time.Duration{grantTTL/5 - time.Millisecond, 0, -time.Second} {
		scene(t, early.String(), func(w *world) {
			c := w.retainer()
			last := lock(w, c, "key")
			deadline := last.Deadline()
			w.store.Every(asynclocktest.Match(asynclocktest.Any).From(0), asynclocktest.Hang)
			unlock(w, last)
			w.pass(time.Until(deadline) - early)
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			l, err := c.Lock(ctx, "key")
			if err == nil {
				w.Errorf("got the key with %v of trust left, want the store to be asked", time.Until(l.Deadline()))
			}
		})
	}
	scene(t, "watchdog stands still", func(w *world) {
		c, brake := w.braked(asynclock.WithRetention(bound))
		other := w.client()
		w.retained(c)
		goOn := brake.pull(w)
		w.pass(ttl)
		theirs := lock(w, other, "key")
		p := w.ask(w.Context(), c, "key")
		p.waits()
		goOn()
		unlock(w, theirs)
		unlock(w, p.get())
	})
}

// When a client dies, what it retained keeps others waiting for the TTL, as what
// it held would. Its tokens are below theirs.
func TestRetainedKeyOfADeadClientExpires(t *testing.T) {
	for name, regrant := range map[string]func(*store.Grant){
		"tokens set aside":             func(*store.Grant) {},
		"a token for each microsecond": func(g *store.Grant) { g.Reserved, g.TokensFollowClock = 0, true },
	} {
		scene(t, name, func(w *world) {
			w.store.Regrant(regrant)
			here, there := w.retainer(), w.client()
			leases := []*asynclock.Lease{lock(w, here, "key")}
			for range 100 {
				w.pass(2 * time.Microsecond)
				unlock(w, leases[len(leases)-1])
				leases = append(leases, lock(w, here, "key"))
			}
			unlock(w, leases[100])
			w.wantAsked(1)
			w.store.Every(asynclocktest.Match(asynclocktest.Any).From(0), asynclocktest.Hang)
			w.store.EveryEvent(asynclocktest.EventMatch(asynclocktest.AnyEvent).For(0), asynclocktest.Drop)
			start := time.Now()
			p := w.ask(w.Context(), there, "key")
			w.pass(ttl - time.Second)
			p.waits()
			wantRising(w, append(leases, p.get())...)
			if took := time.Since(start); took > ttl+10*time.Millisecond {
				w.Errorf("the other had the key after %v, want the TTL, %v", took, ttl)
			}
		})
	}
}

// Trust that ends while nobody holds the key ends the retention, too: the store is
// told before it may give the key to others.
func TestRetainedKeyIsGivenBackWithItsTrust(t *testing.T) {
	story(t, func(w *world) {
		w.store.Every(asynclocktest.Renew.On("key"), asynclocktest.Refuse)
		deadline := w.retained(w.retainer()).Deadline()
		w.pass(time.Until(deadline))
		w.wantUnused()
	})
}

// A key whose next token is not free yet is taken by way of the store.
func TestRetainedKeyIsNotTakenWithoutAToken(t *testing.T) {
	for name, regrant := range map[string]func(*store.Grant){
		"all used":   func(g *store.Grant) { g.Reserved, g.TokensFollowClock = 1, false },
		"in no time": func(g *store.Grant) { g.Reserved, g.TokensFollowClock = 1, true },
	} {
		scene(t, name, func(w *world) {
			w.store.Regrant(regrant)
			c := w.retainer()
			first, second := w.retained(c), w.retained(c)
			w.wantAsked(1)
			third := w.retained(c)
			w.wantCalls(asynclocktest.Release.On("key").Where(requeues), 1)
			wantRising(w, first, second, third)
		})
	}
}

// Where a token comes free each microsecond, whoever is faster waits for it. (In
// no bubble, for there no time passes meanwhile.)
func TestRetainedKeyIsTakenAsFastAsTokensComeFree(t *testing.T) {
	t.Parallel()
	st := asynclocktest.Wrap(memstore.New())
	st.Regrant(func(g *store.Grant) { g.Reserved, g.TokensFollowClock = 0, true })
	c, err := asynclock.New(st, asynclock.WithRetention(time.Hour), asynclock.WithTTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	for range 20_000 {
		unlock(t, lock(t, c, "key"))
	}
	if got := len(st.Calls(asynclocktest.Acquire.Any)) + len(st.Calls(asynclocktest.Release.Any)); got != 1 {
		t.Errorf("asked the store %d times, want once", got)
	}
}

// While renewals fail the store is asked, who may know of another holder by now.
func TestRetainedKeyIsNotTakenWhileRenewalsFail(t *testing.T) {
	story(t, func(w *world) {
		c := w.retainer()
		w.retained(c)
		stop := w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
		w.pass(ttl / 2)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if l, err := c.Lock(ctx, "key"); err == nil {
			w.Fatalf("got the key with %v of trust left, want the store to be asked", time.Until(l.Deadline()))
		}
		stop()
		unlock(w, lock(w, c, "key"))
	})
}

// A key that was renewed for longer than the TTL is not retained. If the client died, others would
// otherwise wait for longer than the TTL.
func TestLongRenewalIsNotRetained(t *testing.T) {
	scene(t, "by the unlock", func(w *world) {
		l := lock(w, w.retainer(), "key")
		if err := l.Renew(w.Context(), time.Hour); err != nil {
			w.Fatal(err)
		}
		unlock(w, l)
		w.wantUnused()
	})
	for name, fault := range map[string]asynclocktest.Fault{
		"answered late": asynclocktest.Slow(0, time.Second/2), "never answered": asynclocktest.LoseReply,
	} {
		scene(t, name, func(w *world) {
			c := w.retainer()
			l := lock(w, c, "key")
			w.store.Next(asynclocktest.Renew.On("key"), fault)
			renewed := make(chan error, 1)
			go func() { renewed <- l.Renew(w.Context(), time.Hour) }()
			w.wait()
			unlock(w, l)
			w.wantUnused()
			w.Logf("Renew: %v", <-renewed)
		})
	}
	scene(t, "not longer", func(w *world) {
		l := lock(w, w.retainer(), "key")
		w.pass(time.Second)
		if err := l.Renew(w.Context(), ttl); err != nil {
			w.Fatal(err)
		}
		unlock(w, l)
		w.wantRetained(true)
	})
}

// A caller that takes the key by force through the retaining client itself need not wait for the
// notification.
func TestForceUnlockGivesBackWhatIsRetainedHere(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.retainer(), w.client()
		w.retained(here)
		w.store.EveryEvent(asynclocktest.Kind(store.EventForced), asynclocktest.Drop)
		if held, err := here.ForceUnlock(w.Context(), "key", 0); err != nil || !held {
			w.Errorf("ForceUnlock: got %v, %v, want the key to have been held", held, err)
		}
		theirs := lock(w, there, "key")
		_, err := here.TryLock(w.Context(), "key")
		wantError(w, err, asynclock.ErrHeld)
		unlock(w, theirs)
	})
}
