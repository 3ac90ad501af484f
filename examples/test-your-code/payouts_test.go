// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newPayouts makes those of one process. They take a minute for each person.
func newPayouts(t *testing.T, store store.Store, b bank) *payouts {
	t.Helper()
	locks, err := asynclock.New(store, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close(context.Background()) }) // in the bubble, which would wait for the client
	return &payouts{locks, b, time.Minute}
}

func people(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("person ", i)
	}
	return all
}

// Five hours pass at once, and the lease is renewed all the time.
func TestPayoutsMayTakeHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryBank()
		began := time.Now()
		paid, err := newPayouts(t, memstore.New(), b).run(t.Context(), people(300))
		if !paid || err != nil || b.payments != 300 {
			t.Errorf("got %t, %v, %d payments, want 300", paid, err, b.payments)
		}
		if took := time.Since(began); took != 5*time.Hour {
			t.Errorf("got %v, want 5h", took)
		}
	})
}

// Two clients of one store are two processes.
func TestOneProcessPaysAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memstore.New(), newMemoryBank()
		first, second := newPayouts(t, store, b), newPayouts(t, store, b)
		done := make(chan error)
		go func() {
			_, err := first.run(t.Context(), people(10))
			done <- err
		}()
		time.Sleep(5 * time.Minute)
		if paid, err := second.run(t.Context(), people(10)); paid || err != nil {
			t.Errorf("got %t, %v, want false and no error", paid, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The network fails for good after ten minutes.
func TestPayoutsStopWhenTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := asynclocktest.New(), newMemoryBank()
		p := newPayouts(t, store, b)
		time.AfterFunc(10*time.Minute, func() { store.Cut(0) })
		began := time.Now()
		_, err := p.run(t.Context(), people(300))
		if !errors.Is(err, asynclock.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if took := time.Since(began); took > 10*time.Minute+asynclock.DefaultTTL {
			t.Errorf("got an end after %v, want one within the TTL", took)
		}
	})
}

// The first answer is lost. So nobody knows whether the key is ours, and nobody is paid. The next run finds the key
// free, because the client gave it back.
func TestALostAnswerLeavesNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := asynclocktest.New(), newMemoryBank()
		p := newPayouts(t, store, b)
		store.Next(asynclocktest.Acquire.On("payouts"), asynclocktest.LoseReply)
		if _, err := p.run(t.Context(), people(10)); !errors.Is(err, asynclock.ErrUnreachable) || b.payments != 0 {
			t.Errorf("got %v and %d payments, want ErrUnreachable and none", err, b.payments)
		}
		time.Sleep(time.Second)
		if paid, err := p.run(t.Context(), people(10)); !paid || err != nil || b.payments != 10 {
			t.Errorf("got %t, %v, %d payments, want 10", paid, err, b.payments)
		}
	})
}

// Renewals fail for a few seconds, which is less than the TTL. The client repeats them, and nobody notices.
func TestPayoutsOutliveAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := asynclocktest.New(), newMemoryBank()
		p := newPayouts(t, store, b)
		refused := 0
		b.before = func(person string) error {
			if person == "person 3" {
				stop := store.Every(asynclocktest.Renew.On("payouts"), func(context.Context, func()) error {
					refused++
					return asynclock.ErrUnreachable
				})
				time.AfterFunc(6*time.Second, stop)
			}
			return nil
		}
		if paid, err := p.run(t.Context(), people(10)); !paid || err != nil || b.payments != 10 {
			t.Errorf("got %t, %v, %d payments, want 10", paid, err, b.payments)
		}
		if refused == 0 {
			t.Error("got no renewal in six seconds, want some that were refused")
		}
	})
}

// A process stands still before a payment. Meanwhile another one takes over. Then the first one goes on, and the
// bank refuses it.
func TestASleeperIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := asynclocktest.New(), newMemoryBank()
		first, second := newPayouts(t, store, b), newPayouts(t, store, b)
		b.before = func(person string) error {
			if person != "person 3" {
				return nil
			}
			b.before = func(string) error { return nil }
			resume := store.Pause(0) // the first client
			defer resume()
			time.Sleep(time.Minute) // longer than the TTL
			paid, err := second.run(t.Context(), people(10))
			if !paid {
				t.Error("got another holder after the TTL, want none")
			}
			return err
		}
		if _, err := first.run(t.Context(), people(10)); !errors.Is(err, fence.ErrStale) || !errors.Is(err, asynclock.ErrLost) {
			t.Errorf("got %v, want ErrStale and ErrLost", err)
		}
		if b.payments != 10 {
			t.Errorf("got %d payments, want 10", b.payments)
		}
	})
}
