// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The stories that follow are about retained keys that others want, and about
// clients that don't hear of it.

var (
	wanted    = asynclocktest.Kind(store.EventRequested)
	contended = asynclocktest.Kind(store.EventQueued)
)

func TestRetainedKeyIsGivenToAnotherAtOnce(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.retainer(), w.retainer()
		leases := []*asynclock.Lease{w.retained(here)}
		for i := range 10 {
			start := time.Now()
			l := lock(w, []*asynclock.Client{there, here}[i%2], "key")
			wantTime(w, "the other has it", time.Now(), start)
			unlock(w, l)
			leases = append(leases, l)
		}
		wantRising(w, leases...)
	})
}

// TryLock does not queue, but asks again a moment later if that may help, and only
// once.
func TestRetainedKeyIsGivenBackAfterATryLock(t *testing.T) {
	const far = 30 * time.Millisecond // the way of a request, and of an answer
	for name, c := range map[string]struct{ way, pause time.Duration }{
		"near": {0, 5 * time.Millisecond}, "far away": {far, 4 * far}, "very far away": {callTimeout / 2, callTimeout},
	} {
		scene(t, name, func(w *world) {
			here, there := w.retainer(), w.client()
			w.retained(here)
			w.store.Every(asynclocktest.Any, asynclocktest.Slow(c.way, c.way-time.Nanosecond))
			w.store.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Delay(c.way))
			start := time.Now()
			l, err := there.TryLock(w.Context(), "key")
			if err != nil {
				w.Fatalf("TryLock: got %v, want the key", err)
			}
			if got, want := time.Since(start), 4*c.way+c.pause; got > want || got < want-10*time.Nanosecond {
				w.Errorf("TryLock took %v, want %v", got, want)
			}
			unlock(w, l)
		})
	}
}

// The others' wishes come too late for one try if the message is lost, but each
// try is one.
func TestTryLockWhoseMessageIsLostFails(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.retainer(), w.client()
		w.retained(here)
		w.store.NextEvent(wanted, asynclocktest.Drop, asynclocktest.Drop)
		wantError(w, errOf(there.TryLock(w.Context(), "key")), asynclock.ErrHeld)
		l, err := there.TryLock(w.Context(), "key")
		if err != nil {
			w.Fatalf("the next TryLock: got %v, want the key", err)
		}
		unlock(w, l)
	})
}

// A waiter gets the key after the next unlock, however busy the holder's client is.
func TestRetentionStarvesNobody(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.retainer(), w.client()
		stop := make(chan struct{})
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			for {
				select {
				case <-stop:
					return
				default:
				}
				l := lock(w, here, "key")
				time.Sleep(time.Millisecond)
				unlock(w, l)
			}
		}()
		w.pass(time.Second + time.Millisecond/2)
		for range 10 {
			start := time.Now()
			l := lock(w, there, "key")
			if took := time.Since(start); took > 2*time.Millisecond {
				w.Errorf("the other waited for %v, want no longer than for the lease that was", took)
			}
			unlock(w, l)
			time.Sleep(5 * time.Millisecond)
		}
		close(stop)
		<-busy
	})
}

// A message that is lost is repeated by the waiter's heartbeat, and if all are
// lost, a renewal says that somebody waits.
func TestLostMessagesDelayTheGivingBack(t *testing.T) {
	for _, c := range []struct {
		name string
		lost []asynclocktest.EventFault
		more asynclocktest.EventFault
		most time.Duration
		ttl  time.Duration
	}{
		{"the first", []asynclocktest.EventFault{asynclocktest.Drop}, nil, heartbeat + heartbeat/5, ttl},
		{"all", nil, asynclocktest.Drop, ttl/3 + ttl/30, ttl},
		{"all, and the TTL is long", nil, asynclocktest.Drop, ttl/3 + ttl/30, time.Hour},
	} {
		scene(t, c.name, func(w *world) {
			here, there := w.retainer(), w.client()
			w.store.EveryEvent(contended, asynclocktest.Drop)
			if c.more != nil {
				w.store.EveryEvent(wanted, c.more)
			}
			w.store.NextEvent(wanted, c.lost...)
			w.retained(here, asynclock.WithTTL(c.ttl))
			w.pass(ttl) // renewed by then
			start := time.Now()
			l := w.ask(w.Context(), there, "key").get()
			if took := time.Since(start); took == 0 || took > c.most {
				w.Errorf("the other had the key after %v, want more than nothing and at most %v", took, c.most)
			}
			unlock(w, l)
		})
	}
}

func TestNothingIsRetainedOnAStoreThatSaysNothing(t *testing.T) {
	for name, able := range map[string]bool{"for ever": false, "for now": true} {
		scene(t, name, func(w *world) {
			var log notebook
			c := w.clientOf(promising(w.store, able, false), asynclock.WithRetention(bound), log.option(slog.LevelInfo))
			unlock(w, lock(w, c, "key"))
			unlock(w, lock(w, c, "key", asynclock.WithRetention(2*bound)))
			w.wantUnused()
			w.close(c)
			if got, want := strings.Count(log.String(), "no key is retained"), map[bool]int{false: 1, true: 0}[able]; got != want {
				w.Errorf("the log says so %d times, want %d", got, want)
			}
			for _, c := range w.store.Calls(asynclocktest.Acquire.On("key")) {
				if c.Acquire.NotifyRequests != able {
					w.Errorf("asked to be told who wants the key: %v, want %v", c.Acquire.NotifyRequests, able)
				}
			}
		})
	}
}

// The stories that follow are about retained keys that the client loses.

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

// Where a token comes free each microsecond, whoever is faster waits for it. (In
// no bubble, for there no time passes meanwhile.)
func TestRetainedKeyIsTakenAsFastAsTokensComeFree(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Go's clock stands still there for half a millisecond or more, so the store is asked now and then")
	}
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
		wantError(w, errOf(here.TryLock(w.Context(), "key")), asynclock.ErrHeld)
		unlock(w, theirs)
	})
}

// The client gives it back without knowing that the store has lost it.
func TestRetainedKeyThatIsLostBeforeItIsGivenBackIsNobodysLoss(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.retainer(log.option(slog.LevelInfo))
		w.retained(c)
		if held, err := w.store.Expire(w.Context(), "key"); err != nil || !held {
			w.Fatalf("Expire: got %v, %v, want the key to have been held", held, err)
		}
		if err := c.Close(w.Context()); err != nil {
			w.Error(err)
		}
		if text := log.String(); text != "" {
			w.Errorf("got the log %q, want nothing", text)
		}
	})
}

// The client gives it back before a renewal finds out, and somebody may have had it when another was given it.
func TestRetainedKeyThatWasStolenBeforeItIsGivenBackIsSaidInTheLog(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c, other := w.retainer(log.option(slog.LevelWarn)), w.client()
		mine := lock(w, c, "key")
		w.store.EveryEvent(asynclocktest.Kind(store.EventForced), asynclocktest.Drop)
		if _, err := w.session().Force(w.Context(), "key", 0); err != nil {
			w.Fatal(err)
		}
		theirs := lock(w, other, "key")
		unlock(w, mine)
		if err := c.Close(w.Context()); err != nil {
			w.Error(err)
		}
		log.wantLine(w, "level=WARN", "another has a key that was retained", "key=key")
		unlock(w, theirs)
	})
}
