// SPDX-License-Identifier: Apache-2.0

package asynclocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// A payroll is a service as users write them: it pays everyone, one after the
// other, and no two of it may at a time. The bank refuses a token that is older
// than one it has seen.
type payroll struct {
	locks *asynclock.Client
	bank  *bank
}

func (p *payroll) run(ctx context.Context, people int) error {
	return p.locks.WithLock(ctx, "payroll", func(ctx context.Context, l *asynclock.Lease) error {
		for range people {
			select {
			case <-time.After(time.Minute): // it takes its time
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err := p.bank.pay(l.Token()); err != nil {
				return err
			}
		}
		return nil
	})
}

type bank struct {
	token    int64
	payments int
}

func (b *bank) pay(token int64) error {
	if token < b.token {
		return errors.New("stale token")
	}
	b.token = token
	b.payments++
	return nil
}

// newPayroll makes one that is closed at the end of the test.
func newPayroll(t *testing.T, store store.Store, b *bank) *payroll {
	t.Helper()
	locks, err := asynclock.New(store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return &payroll{locks, b}
}

// In a bubble, the hours that this takes pass at once.
func TestPayrollPaysEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(bank)
		if err := newPayroll(t, asynclocktest.New(), b).run(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		if b.payments != 300 {
			t.Errorf("got %d payments, want 300", b.payments)
		}
	})
}

func TestPayrollStopsWhenItsStoreIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := asynclocktest.New(), new(bank)
		p := newPayroll(t, store, b)
		time.AfterFunc(10*time.Minute, func() { store.Cut(0) })
		err := p.run(t.Context(), 300)
		if !errors.Is(err, asynclock.ErrLost) {
			t.Errorf("got error %v, want %v", err, asynclock.ErrLost)
		}
		if b.payments > 10 {
			t.Errorf("got %d payments, want none after ten minutes", b.payments)
		}
	})
}

func TestPayrollsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := asynclocktest.New(), new(bank)
		first, second := newPayroll(t, store, b), newPayroll(t, store, b)
		// Every second wake-up is lost, and renewals are slow: nobody should notice.
		lose := false
		store.EveryEvent(asynclocktest.AnyEvent, func(deliver func()) {
			if lose = !lose; !lose {
				deliver()
			}
		})
		store.Every(asynclocktest.Renew.On("payroll"), asynclocktest.Slow(time.Second/4, time.Second/4))
		done := make(chan error)
		for _, p := range []*payroll{first, second} {
			go func() { done <- p.run(t.Context(), 10) }()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if b.payments != 20 {
			t.Errorf("got %d payments, want 20", b.payments)
		}
	})
}
