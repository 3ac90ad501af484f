// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
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
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		return nil
	})
}
