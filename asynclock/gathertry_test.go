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

// A lane that takes long does not delay the others, neither with a try nor with an unlock.
func TestLockAllSendsTheLanesSideBySide(t *testing.T) {
	story(t, func(w *world) {
		const slow = time.Second / 2
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		w.store.Every(asynclocktest.Acquire.Any, asynclocktest.Slow(slow/2, slow/2))
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Slow(slow/2, slow/2))
		start := time.Now()
		st, sizes := counted(w.store)
		m := lockAll(w, w.clientOf(st), three)
		wantTime(w, "the lease", time.Now(), start.Add(slow))
		unlockAll(w, m)
		wantTime(w, "the end", time.Now(), start.Add(2*slow))
		if want := []int{1, 1, 1}; !slices.Equal(sizes.acquires, want) || !slices.Equal(sizes.releases, want) {
			w.Errorf("got calls of %v and %v requests, want one for each lane", sizes.acquires, sizes.releases)
		}
		w.wantUnused()
	})
}

// Keys that another client only retains cost one pause, however many there are.
func TestTryLockAllAsksTwiceForRetainedKeys(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		unlockAll(w, lockAll(w, theirs, three, asynclock.WithRetention(time.Hour)))
		w.wantHeld(three...)
		start := time.Now()
		m, err := ours.TryLockAll(w.Context(), three)
		if err != nil {
			w.Fatal(err)
		}
		wantTime(w, "the lease", time.Now(), start.Add(5*time.Millisecond))
		unlockAll(w, m)
		w.wantUnused()
	})
}

// The pause before the second try ends with the context, and with the client.
func TestTryLockAllThatEndsBeforeItsSecondTry(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, ours *asynclock.Client, cancel context.CancelFunc)
		want error
	}{
		"its context ends":  {func(_ *world, _ *asynclock.Client, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"the client closes": {func(w *world, ours *asynclock.Client, _ context.CancelFunc) { w.close(ours) }, asynclock.ErrClosed},
	} {
		scene(t, name, func(w *world) {
			ours, theirs := w.client(), w.client()
			w.store.EveryEvent(nil, func(func()) {}) // nobody gives the key back
			unlockAll(w, lockAll(w, theirs, []string{"b"}, asynclock.WithRetention(time.Hour)))
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			start := time.Now()
			time.AfterFunc(time.Millisecond, func() { c.end(w, ours, cancel) })
			_, err := ours.TryLockAll(ctx, three)
			wantError(w, err, c.want)
			wantTime(w, "the end", time.Now(), start.Add(time.Millisecond))
			w.wantHeld("b")
		})
	}
}

// A request of another caller of the client may be under way. A try waits for its answer.
func TestTryLockAllBesideARequest(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Next(asynclocktest.Acquire.On("b"), asynclocktest.Slow(time.Second/4, time.Second/4))
		p := w.ask(w.Context(), c, "b")
		start := time.Now()
		_, err := c.TryLockAll(w.Context(), three)
		wantError(w, err, asynclock.ErrHeld)
		wantOp(w, err, "try lock all", "b")
		wantTime(w, "the refusal", time.Now(), start.Add(time.Second/2))
		w.wantHeld("b")
		unlock(w, p.has())

		// The other caller may leave, and then nobody has the key.
		w.store.Next(asynclocktest.Acquire.On("b"), asynclocktest.Slow(time.Second/4, time.Second/4))
		ctx, cancel := context.WithTimeout(w.Context(), time.Second/8)
		defer cancel()
		c.LockChan(ctx, "b")
		m, err := c.TryLockAll(w.Context(), three)
		if err != nil {
			w.Fatal(err)
		}
		unlockAll(w, m)
		w.wantUnused()
	})
}

// The end of the context is the reason why there was no answer.
func TestTryLockAllSaysThatItsContextHasEnded(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Acquire.On("b"), asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second/8)
		defer cancel()
		_, err := c.TryLockAll(ctx, three)
		wantError(w, err, context.DeadlineExceeded)
		if errors.Is(err, asynclock.ErrUnreachable) {
			w.Errorf("got error %v, which blames the store", err)
		}
	})
}

func TestTryLockAllJoinsWhatItIsUnder(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "b")
		m, err := c.TryLockAll(l.Context(), three)
		if err != nil {
			w.Fatal(err)
		}
		if got := m.Token("b"); got != l.Token() {
			w.Errorf("token: got %d, want %d of the lease that was joined", got, l.Token())
		}
		unlockAll(w, m)
		wantValid(w, l)
		unlock(w, l)
		w.wantUnused()
	})
}
