// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
)

// A payouts is the code to be tested. It pays people one after the other, and no two processes may at a time.
type payouts struct {
	locks *asynclock.Client
	bank  bank
	pause time.Duration // after each payment, as the bank wants it
}

// A bank pays. It refuses a holder that is not the latest one, and pays nobody twice.
type bank interface {
	pay(ctx context.Context, lease fence.Holder, person string) error
}

// run pays all people. It reports false if another process is at it.
func (p *payouts) run(ctx context.Context, people []string) (bool, error) {
	err := p.locks.WithLock(ctx, "payouts", func(ctx context.Context, lease *asynclock.Lease) error {
		for _, person := range people {
			if err := p.bank.pay(ctx, lease, person); err != nil {
				return err
			}
			select {
			case <-time.After(p.pause):
			case <-ctx.Done(): // the program ends, or the lease is lost
				return context.Cause(ctx)
			}
		}
		return nil
	}, asynclock.WithWait(0))
	if errors.Is(err, asynclock.ErrHeld) {
		return false, nil
	}
	return true, err
}
