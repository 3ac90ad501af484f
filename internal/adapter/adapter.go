// SPDX-License-Identifier: Apache-2.0

// Package adapter has what the adapters in contrib share. They implement interfaces of other libraries,
// which know neither leases nor the errors of locks.
package adapter

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Request is [asynclock.Client.Lock] or [asynclock.Client.TryLock].
type Request func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error)

// Check returns the error of arguments that the request would refuse each time: bad options, a bad key,
// no client. An adapter calls it when it is made, because the libraries mostly drop errors later.
func Check(request Request, key string, options []asynclock.LockOption) error {
	ended, end := context.WithCancel(context.Background())
	end() // so that the request ends after the check of its arguments, and nothing is sent
	_, err := request(ended, key, options...)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Unlock ends a lease, and returns an error only if the lease did not cover the work: ErrLost or
// ErrClosed. Other errors of Unlock concern the store only, and the release continues in the
// background.
func Unlock(ctx context.Context, lease *asynclock.Lease) error {
	if err := lease.Unlock(ctx); errors.Is(err, asynclock.ErrLost) || errors.Is(err, asynclock.ErrClosed) {
		return err
	}
	return nil
}

// NotBegun reports whether err, of a request, says that the work may begin later: others hold the key,
// or the store can't be reached. Every other error needs somebody who mends something.
func NotBegun(err error) bool {
	for _, passing := range []error{
		asynclock.ErrHeld, asynclock.ErrQueueFull, asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
