// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

var three = []string{"a", "b", "c"}

func TestRenewOfAMultiLeaseExtendsEachPart(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.client(), three, asynclock.WithRenewal(false))
		w.pass(ttl / 2)
		now := time.Now()
		if err := m.Renew(w.Context(), time.Hour); err != nil {
			w.Fatal(err)
		}
		wantTime(w, "the deadline", m.Deadline(), now.Add(trusted(time.Hour)))
		if err := m.Renew(w.Context(), asynclock.MinTTL); err != nil {
			w.Error(err)
		}
		wantTime(w, "the deadline after a shorter TTL", m.Deadline(), now.Add(trusted(time.Hour)))
		for _, key := range three {
			w.wantCalls(asynclocktest.Renew.On(key), 2)
		}
		w.pass(trusted(time.Hour))
		wantError(w, m.Err(), asynclock.ErrExpired)
	})
}

func TestRenewOfAMultiLeaseIsOneCall(t *testing.T) {
	story(t, func(w *world) {
		st, sizes := counted(w.store)
		m := lockAll(w, w.clientOf(st), three)
		if err := m.Renew(w.Context(), time.Hour); err != nil || !slices.Equal(sizes.renewals, []int{3}) {
			w.Errorf("Renew: error %v, calls of %v renewals, want one of 3", err, sizes.renewals)
		}
	})
}

// A lane that takes long does not delay the others.
func TestRenewOfAMultiLeaseSendsTheLanesSideBySide(t *testing.T) {
	story(t, func(w *world) {
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Slow(time.Second/2, time.Second/2))
		m := lockAll(w, w.client(), three, asynclock.WithRenewal(false))
		start := time.Now()
		if err := m.Renew(w.Context(), time.Hour); err != nil {
			w.Error(err)
		}
		wantTime(w, "the end", time.Now(), start.Add(time.Second))
		wantTime(w, "the deadline", m.Deadline(), start.Add(trusted(time.Hour)))
	})
}

func TestRenewOfAMultiLeaseNamesThePartThatWasNotRenewed(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.client(), three, asynclock.WithRenewal(false))
		until := m.Deadline()
		w.pass(time.Second)
		w.store.Next(asynclocktest.Renew.On("b"), asynclocktest.Refuse)
		err := m.Renew(w.Context(), time.Hour)
		wantError(w, err, asynclock.ErrUnreachable)
		wantOp(w, err, "renew all", "b")
		wantTime(w, "the deadline", m.Deadline(), until)
		if err := m.Err(); err != nil {
			w.Errorf("the lease: got %v, want it to last", err)
		}
		for _, key := range []string{"a", "c"} {
			l, _ := asynclock.LeaseFrom(m.Context(), key)
			wantTime(w, "the deadline of "+key, l.Deadline(), time.Now().Add(trusted(time.Hour)))
		}
	})
}

func TestRenewOfAMultiLeaseThatTurnsOutToBeLost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		w.store.EveryEvent(nil, func(func()) {}) // nobody is told
		m := lockAll(w, ours, three)
		if _, err := theirs.ForceUnlock(w.Context(), "b", 0); err != nil {
			w.Fatal(err)
		}
		err := m.Renew(w.Context(), time.Hour)
		wantOp(w, err, "renew all", "")
		var part *asynclock.PartError
		if wantError(w, err, asynclock.ErrExpired); !errors.As(err, &part) || part.Key != "b" {
			w.Errorf("Renew: got %v, want a PartError of b", err)
		}
		sent := w.calls(asynclocktest.Renew.Any)
		wantError(w, m.Renew(w.Context(), time.Hour), asynclock.ErrExpired)
		if got := w.calls(asynclocktest.Renew.Any); got != sent {
			w.Errorf("a lease that has ended: %d renewals, want none", got-sent)
		}
	})
}

func TestRenewOfAMultiLeaseThatMakesNoSense(t *testing.T) {
	story(t, func(w *world) {
		m := lockAll(w, w.client(), three)
		for what, err := range map[string]error{
			"a nil context": m.Renew(nil, time.Hour), //nolint:staticcheck // that is the point
			"a short TTL":   m.Renew(w.Context(), asynclock.MinTTL-1),
			"a long TTL":    m.Renew(w.Context(), asynclock.MaxTTL+1),
		} {
			if wantError(w, err, asynclock.ErrInvalidOption); w.calls(asynclocktest.Renew.Any) != 0 {
				w.Errorf("Renew with %s was sent", what)
			}
		}
		unlockAll(w, m)
		wantError(w, m.Renew(context.Background(), time.Hour), asynclock.ErrUnlocked)
	})
}

// A note belongs to one key. The lease of that key writes it, and a downgrade of it ends the whole.
func TestWhatAMultiLeaseLeavesToItsParts(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		m := lockAll(w, c, []string{"another", "key"})
		l, ok := asynclock.LeaseFrom(m.Context(), "key")
		if !ok {
			w.Fatal("no lease of the key")
		}
		setNote(w, l, "note")
		wantNote(w, c, "note", m.Token("key"))
		reader := downgrade(w, l)
		var part *asynclock.PartError
		if err := m.Err(); !errors.As(err, &part) || part.Key != "key" || !errors.Is(err, asynclock.ErrUnlocked) {
			w.Errorf("the whole after a downgrade: got %v, want a PartError of the key", err)
		}
		unlock(w, reader)
	})
}
