// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A client that is closed has left no timer, and nothing with a context that goes
// on. In real time: in a bubble a timer that was stopped stays until it would have
// fired. Not parallel: the profile is the process's.
func TestClosedClientHasNoTimer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context()) // it goes on until all has been looked at
	defer cancel()
	defer timerleak.Watch()()
	useAndClose(ctx, t)
	if err := timerleak.Find("github.com/asynclock/asynclock-go/asynclock."); err != nil {
		t.Error(err)
	}
}

// useAndClose does with two clients all that may set a timer, each thing so often that
// a step that is missed now and then shows, and closes them.
func useAndClose(ctx context.Context, t *testing.T) {
	t.Helper()
	const times = 20
	store := memstore.New()
	open := func(options ...asynclock.ClientOption) *asynclock.Client {
		c, err := asynclock.New(store, options...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ours, theirs := open(asynclock.WithRetention(time.Minute)), open(asynclock.WithTTL(time.Minute))
	impatient, giveUp := context.WithCancel(ctx)
	held := lock(t, ours, "held")
	for range times {
		theirs.LockChan(ctx, "held") // until the client is closed
		theirs.LockChan(impatient, "held")
	}
	giveUp()
	var working sync.WaitGroup
	for range times {
		for _, c := range []*asynclock.Client{ours, theirs} {
			working.Go(func() {
				inTime, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				lease, err := c.Lock(inTime, "wanted")
				if err != nil {
					t.Error(err)
					return
				}
				lease.Unlock(inTime)
				if lease, err := c.TryLock(ctx, "tried"); err == nil {
					if err := <-lease.UnlockChan(ctx); err != nil {
						t.Error(err)
					}
				} else if !errors.Is(err, asynclock.ErrHeld) {
					t.Error(err)
				}
			})
		}
	}
	working.Wait()
	bounded := lock(t, theirs, "bounded", asynclock.WithMaxHold(time.Hour), asynclock.WithMinHold(time.Millisecond))
	if err := bounded.Renew(ctx, time.Minute); err != nil {
		t.Error(err)
	}
	bounded.Unlock(ctx)
	held.Unlock(ctx)
	for _, c := range []*asynclock.Client{ours, theirs} {
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}
