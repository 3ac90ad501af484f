// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Fault is what becomes of one request. It may call carry any number of
// times, at any time, even after it has returned: each carries the request out
// at the store, whatever has become of ctx. What it returns is the requester's
// answer: an error, or nil for what the last carry has brought, which is
// [asynclock.ErrOutcomeUnknown] if there was none. A Fault that is nil carries the
// request out as if nothing was wrong.
type Fault func(ctx context.Context, carry func()) error

// Fail answers err without asking the store.
func Fail(err error) Fault {
	return func(context.Context, func()) error { return err }
}

// Refuse is [Fail] with [asynclock.ErrUnreachable]: nothing happened.
func Refuse(context.Context, func()) error { return asynclock.ErrUnreachable }

// LoseReply carries the request out and answers [asynclock.ErrOutcomeUnknown].
func LoseReply(_ context.Context, carry func()) error {
	carry()
	return asynclock.ErrOutcomeUnknown
}

// Silence carries the request out and then says nothing until ctx ends.
func Silence(ctx context.Context, carry func()) error {
	carry()
	return Hang(ctx, nil)
}

// Hang loses the request: there is no answer until ctx ends.
func Hang(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// Stuck does nothing before until is closed, not even at the end of ctx, and
// then what then does.
func Stuck(until <-chan struct{}, then Fault) Fault {
	return func(ctx context.Context, carry func()) error {
		<-until
		return then(ctx, carry)
	}
}

// Slow takes the request so long to the store, and the reply so long back. If
// ctx ends before, the answer is its error, and the request arrives all the
// same.
func Slow(there, back time.Duration) Fault {
	return func(ctx context.Context, carry func()) error {
		replied := make(chan struct{})
		time.AfterFunc(there, func() {
			carry()
			time.AfterFunc(back, func() { close(replied) })
		})
		select {
		case <-replied:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Again carries the request out, and once more when d has passed, as a network
// may that repeats what it has delivered.
func Again(d time.Duration) Fault {
	return func(_ context.Context, carry func()) error {
		carry()
		time.AfterFunc(d, carry)
		return nil
	}
}
