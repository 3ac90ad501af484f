// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// sentinels are all the errors that callers can tell apart.
var sentinels = map[string]error{
	"ErrHeld": asynclock.ErrHeld, "ErrQueueFull": asynclock.ErrQueueFull,
	"ErrUnreachable": asynclock.ErrUnreachable, "ErrOutcomeUnknown": asynclock.ErrOutcomeUnknown,
	"ErrUnlocked": asynclock.ErrUnlocked, "ErrLost": asynclock.ErrLost, "ErrExpired": asynclock.ErrExpired,
	"ErrStolen": asynclock.ErrStolen, "ErrForced": asynclock.ErrForced, "ErrMaxHold": asynclock.ErrMaxHold,
	"ErrNotRenewed": asynclock.ErrNotRenewed, "ErrGrace": asynclock.ErrGrace, "ErrTooSlow": asynclock.ErrTooSlow, "ErrClosed": asynclock.ErrClosed,
	"ErrInvalidKey": asynclock.ErrInvalidKey, "ErrInvalidOption": asynclock.ErrInvalidOption,
	"ErrForeignData": asynclock.ErrForeignData, "ErrDenied": asynclock.ErrDenied,
	"ErrReentry": asynclock.ErrReentry, "ErrUpgrade": asynclock.ErrUpgrade, "ErrLockOrder": asynclock.ErrLockOrder,
}

// Each error matches itself and, if it is a kind of another, that one.
func TestSentinelsAreToldApart(t *testing.T) {
	kinds := map[string]string{
		"ErrExpired": "ErrLost", "ErrStolen": "ErrLost", "ErrForced": "ErrLost", "ErrMaxHold": "ErrLost", "ErrNotRenewed": "ErrLost",
		"ErrGrace": "ErrUnreachable", "ErrTooSlow": "ErrUnreachable", "ErrUpgrade": "ErrReentry",
	}
	for name, err := range sentinels {
		wrapped := fmt.Errorf("work: %w", &asynclock.Error{Op: "lock", Key: "key", Err: err})
		for other, target := range sentinels {
			want := name == other || kinds[name] == other
			if got := errors.Is(wrapped, target); got != want {
				t.Errorf("%s is %s: got %v, want %v", name, other, got, want)
			}
		}
		if !strings.HasPrefix(err.Error(), "asynclock: ") {
			t.Errorf("%s says %q, want it to say whose error it is", name, err)
		}
	}
}

func TestErrorSaysWhatWasDoneToWhichKey(t *testing.T) {
	err := &asynclock.Error{Op: "try lock", Key: "a\nb", Err: asynclock.ErrUnreachable}
	if got, want := err.Error(), `asynclock: try lock "a\nb": store unreachable`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	foreign := &asynclock.Error{Op: "lock", Key: "key", Err: context.Canceled}
	if got, want := foreign.Error(), `asynclock: lock "key": context canceled`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	huge := &asynclock.Error{Op: "lock", Key: strings.Repeat("\x00", 1<<20), Err: asynclock.ErrInvalidKey}
	if got := len(huge.Error()); got > 4*asynclock.MaxKeyLen+100 {
		t.Errorf("length of an error about a key of 1 MiB: got %d, want no log full of it", got)
	}
}

func TestHeldErrorSaysWhoHoldsTheKey(t *testing.T) {
	for _, c := range []struct {
		err  *asynclock.HeldError
		want string
	}{
		{&asynclock.HeldError{Key: "key", Holder: "host 7"}, "host 7"},
		{&asynclock.HeldError{Key: "key", Holder: "host 7", Token: 42}, "host 7 with token 42"},
		{&asynclock.HeldError{Key: "key"}, "another"},
		{&asynclock.HeldError{Key: "key", Limit: 3, Holder: "host 7", Token: 42}, "held by host 7 with token 42"}, // by Lock
		{&asynclock.HeldError{Key: "key", Used: 3, Limit: 3, Holder: "2 holders of 3 permits", Token: 42}, "all 3 permits are taken (2 holders of 3 permits)"},
		{&asynclock.HeldError{Key: "key", Used: 4, Limit: 3, Waiters: 2}, "all 3 permits are taken, 2 waiting"},
		{&asynclock.HeldError{Key: "key", Used: 1, Limit: 1, Holder: "host 7"}, "the only permit is taken (host 7)"},
		{&asynclock.HeldError{Key: "key", Used: 2, Limit: 3}, "2 of 3 permits are taken"},
		{&asynclock.HeldError{Key: "key", Used: 1, Limit: 3, Holder: "host\n7"}, `1 of 3 permits is taken ("host\n7")`},
		{&asynclock.HeldError{Key: "key", Holder: "me\n2026 all is well\x1b[2J"}, `"me\n2026 all is well\x1b[2J"`},
	} {
		if got := c.err.Error(); !strings.Contains(got, c.want) || strings.Contains(got, `"key"`) { // the error around it names the key
			t.Errorf("got %q, want it to name %q and not the key", got, c.want)
		}
		if !errors.Is(c.err, asynclock.ErrHeld) {
			t.Errorf("%v is no ErrHeld", c.err)
		}
		for name, target := range sentinels {
			if name != "ErrHeld" && errors.Is(c.err, target) {
				t.Errorf("%v is %s", c.err, name)
			}
		}
	}
}

// No error says "asynclock:" twice, or names the secret that opens a key.
func TestErrorsReadWellAndKeepTheSecret(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client()
		held := lock(w, holder, "key")
		lost := lock(w, holder, "lost", asynclock.WithMaxHold(asynclock.MinTTL))
		refused := lock(w, holder, "refused")
		_, heldErr := c.TryLock(w.Context(), "key")
		ctx, cancel := context.WithCancelCause(w.Context())
		cancel(errors.New("asynclock: of all things"))
		_, endedErr := c.Lock(ctx, "key")
		<-lost.Done()
		w.store.Every(asynclocktest.Renew.On("refused"), asynclocktest.Refuse)
		<-refused.Done()
		_, optionErr := c.Lock(w.Context(), "key", asynclock.WithTTL(0))
		stop := w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		_, deadErr := c.Lock(w.Context(), "another")
		_, deadTryErr := c.TryLock(w.Context(), "another")
		stop()
		unlock(w, held)

		for name, err := range map[string]error{
			"held": heldErr, "ended": endedErr, "lost": lost.Unlock(w.Context()), "refused": refused.Err(),
			"option": optionErr, "dead": deadErr, "dead try": deadTryErr,
		} {
			text := fmt.Sprint(err)
			if strings.Count(text, "asynclock: ") > 1 {
				w.Errorf("%s: %q says whose error it is more than once", name, text)
			}
			for _, call := range w.store.Calls(asynclocktest.Acquire.Any) {
				if strings.Contains(text, call.Owner) {
					w.Errorf("%s: %q names an owner", name, text)
				}
			}
		}
	})
}

// Each error of Close is an Error, and neither these nor those of New say "asynclock:" twice.
func TestErrorsOfNewAndClose(t *testing.T) {
	story(t, func(w *world) {
		_, joinErr := asynclock.New(altered{refuses: asynclock.ErrDenied})
		ended, end := context.WithCancel(w.Context())
		end()
		busy := w.client()
		lock(w, busy, "key")
		leaver := w.client()
		w.store.Next(asynclocktest.Close.From(1), asynclocktest.Fail(asynclock.ErrDenied))
		for name, err := range map[string]error{
			"no context": busy.Close(nil), //nolint:staticcheck // this is what is tested
			"held":       busy.Close(ended),
			"leave":      leaver.Close(w.Context()),
			"close":      w.clientOf(&closable{Store: w.store, err: errStaysOpen}, asynclock.WithOwnedStore()).Close(w.Context()),
		} {
			wantOp(w, err, "close", "")
			if text := fmt.Sprint(err); strings.Count(text, "asynclock: ") != 1 {
				w.Errorf("%s: got %q, want it to say once whose error it is", name, text)
			}
		}
		wantError(w, joinErr, asynclock.ErrDenied)
		if text := fmt.Sprint(joinErr); strings.Count(text, "asynclock: ") != 1 {
			w.Errorf("New: got %q, want it to say once whose error it is", text)
		}
	})
}

// A Lock whose store is silent holds nothing, and its error does not ask whether it does.
func TestErrorOfASilentStoreLeavesNothingOpen(t *testing.T) {
	story(t, func(w *world) {
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		_, err := w.client().Lock(w.Context(), "key")
		wantError(w, err, asynclock.ErrUnreachable)
		if got, want := err.Error(), `asynclock: lock "key": store unreachable: no answer in time`; got != want {
			w.Errorf("got %q, want %q", got, want)
		}
	})
}
