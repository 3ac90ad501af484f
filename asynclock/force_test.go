// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

func TestForceUnlockIsAboutOneHolding(t *testing.T) {
	story(t, func(w *world) {
		holder, admin := w.client(asynclock.WithDescription("first")), w.client()
		unlock(w, lock(w, holder, "key"))
		l := lock(w, holder, "key")
		token := w.inspect("key").Token
		held, err := admin.ForceUnlock(w.Context(), "key", token-1)
		wantError(w, err, asynclock.ErrHeld)
		wantOp(w, err, "force unlock", "key")
		var by *asynclock.HeldError
		if !errors.As(err, &by) || held || by.Key != "key" || by.Holder != "first" || by.Token != token || by.Remaining <= 0 {
			w.Errorf("about another token: got %v, %+v, want who holds the key", held, by)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, "held by first with token 1048577, not with token 1048576") {
			w.Errorf("got %q, want it to name both tokens", text)
		}
		w.wait()
		wantValid(w, l)
		if held, err := admin.ForceUnlock(w.Context(), "key", token); !held || err != nil {
			w.Errorf("about the holder's token: got %v, %v, want true", held, err)
		}
		w.pass(time.Millisecond)
		wantLost(w, l, asynclock.ErrForced)
	})
}

// TestForceUnlockWithoutAnAnswerCanBeRepeated: the next holder keeps the key.
func TestForceUnlockWithoutAnAnswerCanBeRepeated(t *testing.T) {
	story(t, func(w *world) {
		holder, admin, waiter := w.client(), w.client(), w.client()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.store.Next(func(c asynclocktest.Call) bool { return c.Op == asynclocktest.Force }, asynclocktest.LoseReply)
		_, err := admin.ForceUnlock(w.Context(), "key", l.Token())
		wantError(w, err, asynclock.ErrOutcomeUnknown)
		w.pass(time.Millisecond)
		wantLost(w, l, asynclock.ErrForced)
		next := p.has()
		_, err = admin.ForceUnlock(w.Context(), "key", l.Token())
		wantError(w, err, asynclock.ErrHeld)
		w.wait()
		wantValid(w, next)
		unlock(w, next)
		if held, err := admin.ForceUnlock(w.Context(), "key", l.Token()); held || err != nil {
			w.Errorf("repeated when nobody holds the key: got %v, %v, want false", held, err)
		}
	})
}

func TestForceUnlockRefusesTokensThatCannotBe(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		_, err := c.ForceUnlock(w.Context(), "key", -1)
		wantError(w, err, asynclock.ErrInvalidOption)
		wantOp(w, err, "force unlock", "key")
		plain := w.clientOf(altered{Store: w.memory, features: func(f *store.Features) { f.Tokens = false }})
		_, err = plain.ForceUnlock(w.Context(), "key", 1)
		wantError(w, err, asynclock.ErrInvalidOption)
		if held, err := plain.ForceUnlock(w.Context(), "key", 0); held || err != nil {
			w.Errorf("token 0 without tokens: got %v, %v, want false", held, err)
		}
		w.wantCalls(asynclocktest.Any, 0)
	})
}

// A process that was stopped may read what happened to its key before its watchdog runs. A
// lease's time that has passed is why it ended, and not what came after.
func TestForceAfterTheDeadlineIsAnExpiry(t *testing.T) {
	circumstances := fmt.Errorf("%w: the server has restarted", asynclock.ErrExpired)
	for _, c := range []struct {
		name    string
		event   store.EventKind
		told    error
		options []asynclock.LockOption
		left    time.Duration // of the lease
		want    error
	}{
		{"before", store.EventLost, store.ErrForced, nil, time.Nanosecond, asynclock.ErrForced},
		{"after", store.EventForced, nil, nil, 0, asynclock.ErrExpired},
		{"after the maximum hold", store.EventForced, nil, []asynclock.LockOption{asynclock.WithMaxHold(ttl / 2)}, 0, asynclock.ErrMaxHold},
		{"stolen after", store.EventLost, asynclock.ErrStolen, nil, 0, asynclock.ErrExpired},
		{"expired after", store.EventLost, circumstances, nil, 0, circumstances},
	} {
		scene(t, c.name, func(w *world) {
			holder, brake := w.braked()
			l := lock(w, holder, "key", c.options...)
			owner := w.store.Calls(asynclocktest.Any)[0].Owner
			goOn := brake.pull(w)
			w.pass(time.Until(l.Deadline()) - c.left)
			w.store.Tell(0, store.Event{Kind: c.event, Owner: owner, Err: c.told})
			if err := l.Context().Err(); err == nil {
				w.Error("the lease did not end with the event")
			}
			wantLost(w, l, c.want)
			goOn()
		})
	}
}
