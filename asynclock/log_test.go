// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A notebook is a log for a client.
type notebook struct{ kit.Journal }

func (n *notebook) lines() []string { return strings.Split(strings.TrimSpace(n.String()), "\n") }

func (n *notebook) option(level slog.Level) asynclock.ClientOption {
	return asynclock.WithLogger(n.Logger(level))
}

// wantLine fails the test unless a line has all the words.
func (n *notebook) wantLine(tb testing.TB, words ...string) {
	tb.Helper()
	for _, line := range n.lines() {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return
		}
	}
	tb.Errorf("no line of the log has all of %q:\n%s", words, strings.Join(n.lines(), "\n"))
}

func TestLossesAreLogged(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.client(log.option(slog.LevelInfo))
		l := lock(w, c, "key", asynclock.WithMaxHold(time.Minute))
		<-l.Done()
		w.wait()
		log.wantLine(w, "level=WARN", "lost", "key=key", "maximum hold")
		if n := len(log.lines()); n != 1 {
			w.Errorf("got %d lines, want one:\n%s", n, strings.Join(log.lines(), "\n"))
		}
	})
}

func TestFailuresAreLoggedAndNoSecrets(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		holder, c := w.client(), w.client(log.option(slog.LevelDebug))
		mine := lock(w, c, "mine")
		lock(w, holder, "theirs")
		p := w.ask(w.Context(), c, "theirs")
		w.store.Every(asynclocktest.Match(asynclocktest.Any).From(1), asynclocktest.Refuse)
		w.pass(5 * ttl)
		wantError(w, p.ended(), asynclock.ErrUnreachable)
		wantError(w, mine.Unlock(w.Context()), asynclock.ErrNotRenewed)
		w.pass(5 * ttl)
		log.wantLine(w, "level=DEBUG", "renewal failed", "key=mine", "unreachable")
		log.wantLine(w, "level=WARN", "lost", "key=mine", "unreachable")
		log.wantLine(w, "level=WARN", "waiting", "key=theirs", "unreachable")
		log.wantLine(w, "level=WARN", "release", "never confirmed", "unreachable")
		for _, call := range w.store.Calls(asynclocktest.Any) {
			for _, line := range log.lines() {
				if call.Owner != "" && strings.Contains(line, call.Owner) {
					w.Errorf("the log names an owner: %s", line)
				}
			}
		}
	})
}

// A handler that blocks holds up nothing but the log, and may call the client.
func TestSlowLogHandlerHoldsUpNothing(t *testing.T) {
	story(t, func(w *world) {
		h := &slowHandler{Handler: slog.DiscardHandler, enter: make(chan struct{}), leave: make(chan struct{})}
		c := w.client(asynclock.WithLogger(slog.New(h)))
		h.client = c
		first, second := lock(w, c, "first", asynclock.WithMaxHold(time.Minute)), lock(w, c, "second", asynclock.WithMaxHold(2*time.Minute))
		third := lock(w, c, "third")
		<-h.enter
		bound := time.Now().Add(time.Minute)
		wantLost(w, first, asynclock.ErrMaxHold)
		<-second.Done()
		wantTime(w, "end of the second", time.Now(), bound)
		w.pass(10 * ttl)
		wantValid(w, third)
		unlock(w, third)
		close(h.leave)
		w.pass(time.Second)
		if err := h.err; err != nil {
			w.Errorf("a lock taken by the handler: %v", err)
		}
	})
}

type slowHandler struct {
	slog.Handler

	client       *asynclock.Client
	enter, leave chan struct{}
	once         sync.Once
	err          error
}

func (h *slowHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *slowHandler) Handle(ctx context.Context, _ slog.Record) error {
	h.once.Do(func() {
		h.enter <- struct{}{}
		<-h.leave
		h.err = h.client.WithLock(ctx, "first", func(context.Context, *asynclock.Lease) error { return nil })
	})
	return nil
}

func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	kit.LogOptions(t, asynclock.WithLogger, asynclock.WithoutLogger, func(t *testing.T, options []asynclock.ClientOption) error {
		synctest.Test(t, func(t *testing.T) {
			c, err := asynclock.New(memstore.New(), options...)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"a", "b"} { // one line for both
				l := lock(t, c, key, asynclock.WithMaxHold(asynclock.MinTTL))
				<-l.Done()
				wantError(t, l.Unlock(t.Context()), asynclock.ErrMaxHold)
			}
			wantError(t, c.Close(t.Context()), nil)
		})
		return nil
	})
}

// The stories that follow are about what an operator reads of an outage.

const down, up = "the store can't be reached", "the store answers again"

// wantLines fails the test unless the log has so many lines with the words.
func (n *notebook) wantLines(w *world, words string, want int) {
	w.Helper()
	w.wait()
	if got := strings.Count(n.String(), words); got != want {
		w.Errorf("got %d lines that say %q, want %d:\n%s", got, words, want, n.String())
	}
}

// An outage is logged once, soon after the first request has failed, and once more when it is over.
func TestAnOutageIsLoggedOnceAndItsEnd(t *testing.T) {
	faults := map[string]asynclocktest.Fault{"refused": asynclocktest.Refuse, "silent": asynclocktest.Hang}
	for what, fault := range faults {
		scene(t, what, func(w *world) {
			var log notebook
			c := w.client(log.option(slog.LevelWarn))
			for i := range 100 {
				lock(w, c, fmt.Sprint("key ", i))
			}
			stop := w.store.Every(asynclocktest.Renew.Any, fault)
			failed := len(w.store.Calls(asynclocktest.Renew.Any))
			for len(w.store.Calls(asynclocktest.Renew.Any)) == failed {
				w.pass(10 * time.Millisecond)
			}
			w.pass(200 * time.Millisecond)
			log.wantLines(w, down, 0) // it may be a blip
			w.pass(3500 * time.Millisecond)
			log.wantLines(w, down, 1)
			log.wantLine(w, "level=WARN", down, "since=", "key=", "error=")
			stop()
			w.pass(ttl)
			log.wantLines(w, up, 1)
			log.wantLine(w, "level=WARN", up, "after=")
			w.pass(10 * ttl)
			log.wantLines(w, down, 1)
			log.wantLines(w, up, 1)

			w.store.Next(asynclocktest.Renew.Any, asynclocktest.Refuse)
			w.pass(ttl)
			log.wantLines(w, down, 1) // a blip after an outage is one, too

			w.store.Every(asynclocktest.Renew.Any, fault)
			w.pass(ttl)
			log.wantLines(w, down, 2)
		})
	}
}

// A failure that is over soon, a store in its grace, callers without patience and a Close are no outage.
func TestWhatIsNoOutage(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.client(log.option(slog.LevelWarn))
		lock(w, c, "key")
		for range 3 {
			w.store.Next(asynclocktest.Renew.Any, asynclocktest.Refuse)
		}
		w.pass(10 * ttl)
		stop := w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Fail(asynclock.ErrGrace))
		p := w.ask(w.Context(), c, "another")
		w.pass(4 * time.Second) // the store grants nothing, but it answers
		stop()
		p.get()
		for range 20 { // callers without patience give back what they may have got
			ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
			w.store.Next(asynclocktest.Acquire.Any, asynclocktest.Hang)
			wantError(w, errOf(c.TryLock(ctx, "a third")), context.DeadlineExceeded)
			cancel()
			w.pass(100 * time.Millisecond)
		}
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		abandon(c)
		log.wantLines(w, down, 0)
	})
}

// Renewals that hung in an outage fail one by one when it is long over.
func TestLateFailuresAreNoSecondOutage(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.client(log.option(slog.LevelWarn), asynclock.WithTTL(time.Minute))
		lock(w, c, "first")
		w.pass(3 * time.Second)
		lock(w, c, "second")
		stop := w.store.Every(asynclocktest.Renew.Any, asynclocktest.Hang)
		w.pass(24 * time.Second)
		log.wantLines(w, down, 1)
		stop()
		w.pass(time.Minute)
		log.wantLines(w, down, 1)
		log.wantLines(w, up, 1)
	})
}

// Single requests fail, and nobody asks the store in between. That is no outage of an hour.
func TestFailuresThatAreFarApartAreNoOutage(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.client(log.option(slog.LevelWarn), asynclock.WithTTL(10*time.Hour))
		l := lock(w, c, "key", asynclock.WithRenewal(false))
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Refuse)
		for range 3 {
			wantError(w, l.Renew(w.Context(), 10*time.Hour), asynclock.ErrUnreachable)
			w.pass(time.Hour)
		}
		log.wantLines(w, down, 0)
		for range 3 {
			wantError(w, l.Renew(w.Context(), 10*time.Hour), asynclock.ErrUnreachable)
			w.pass(time.Second)
		}
		log.wantLines(w, down, 1)
	})
}

// A store with many lanes has one outage, from the first lane that fails to the last. A lane in which nobody asks any
// more has none.
func TestAnOutageOfSeveralLanesIsLoggedOnce(t *testing.T) {
	of := func(keys string) func(asynclocktest.Call) bool {
		return func(call asynclocktest.Call) bool { return strings.ContainsAny(call.Key, keys) }
	}
	hold := func(w *world, log *notebook) {
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		c := w.client(log.option(slog.LevelWarn))
		for _, key := range []string{"a", "b", "c"} {
			lock(w, c, key)
		}
	}
	scene(t, "until the last is back", func(w *world) {
		var log notebook
		hold(w, &log)
		stop := w.store.Every(of("abc"), asynclocktest.Refuse)
		w.pass(ttl/3 + 2*time.Second)
		log.wantLines(w, down, 1)
		stop()
		stop = w.store.Every(of("b"), asynclocktest.Refuse)
		w.pass(2 * time.Second)
		log.wantLines(w, up, 0)
		stop()
		w.pass(2 * time.Second)
		log.wantLines(w, up, 1)
		log.wantLines(w, down, 1)
	})
	scene(t, "unless nobody asks there", func(w *world) {
		var log notebook
		hold(w, &log)
		w.store.Every(of("b"), asynclocktest.Refuse)
		w.pass(10 * ttl)
		log.wantLines(w, down, 1)
		log.wantLines(w, up, 1)
	})
}
