// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Fault decides what happens to one request. It may call carry any number of times, at any time,
// even after it has returned. Each call executes the request at the store, even if ctx has ended.
// The Fault's return value is the requester's answer: an error, or nil for the result of the last
// carry. If there was no carry, that result is [asynclock.ErrOutcomeUnknown]. A nil Fault executes
// the request normally.
type Fault func(ctx context.Context, carry func()) error

// Fail answers err without asking the store.
func Fail(err error) Fault {
	return func(context.Context, func()) error { return err }
}

// Refuse is [Fail] with [asynclock.ErrUnreachable]: nothing happened.
func Refuse(context.Context, func()) error { return asynclock.ErrUnreachable }

// LoseReply executes the request and answers [asynclock.ErrOutcomeUnknown].
func LoseReply(_ context.Context, carry func()) error {
	carry()
	return asynclock.ErrOutcomeUnknown
}

// Silence executes the request and then does not answer until ctx ends.
func Silence(ctx context.Context, carry func()) error {
	carry()
	return Hang(ctx, nil)
}

// Hang loses the request: there is no answer until ctx ends.
func Hang(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// Stuck does nothing until the channel is closed, not even at the end of ctx. Then it acts as then.
func Stuck(until <-chan struct{}, then Fault) Fault {
	return func(ctx context.Context, carry func()) error {
		<-until
		return then(ctx, carry)
	}
}

// Slow delays the request on its way to the store and the reply on its way back. If ctx ends
// before, the answer is ctx's error, and the request arrives all the same.
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

// Again executes the request, and once more after d, like a network that repeats what it has
// delivered.
func Again(d time.Duration) Fault {
	return func(_ context.Context, carry func()) error {
		carry()
		time.AfterFunc(d, carry)
		return nil
	}
}
