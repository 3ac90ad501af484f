// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"
	"time"
)

// Hooks are functions that a client calls at the edges of its work, for metrics and traces. Any of them may be nil.
//
// None is called under a mutex, so a hook may use this client, too. It is then told of its own requests. Some hooks are
// called on the goroutine of the caller, who waits for them. The others are called one after the other, on a goroutine that
// nothing else depends on. Close waits for it for a second. When 10,000 calls wait for that goroutine, further ones are
// left out, and [Stats.HooksLeftOut] counts them.
//
// A hook that panics has the effect of a panic in the call that it belongs to, which leaves no lease. On the other
// goroutine it ends the process.
type Hooks struct {
	// Wait is called when a request begins, on the goroutine that makes it. The request has the values of the context
	// that Wait returns, and the end of the caller's; nil: it has the caller's. A call that is refused for its arguments, or
	// because its context or the client is over, does not begin.
	Wait func(ctx context.Context, e WaitEvent) context.Context

	// Waited is called once for each Wait, with its context, when it is decided what the request has come to: on the
	// caller's goroutine, before the call returns. For a future it is called in [Result.Lease], or on the other
	// goroutine if that was decided before.
	Waited func(ctx context.Context, e WaitedEvent)

	// Hold is called when a caller gets a lease, on its goroutine: before the call returns, or in the first call of
	// [Result.Lease]. The context of the lease, and that of the function of [Client.WithLock], have the values of the
	// context that Hold returns; nil: those of Wait's.
	Hold func(ctx context.Context, e HoldEvent) context.Context

	// Held is called once for each Hold, with its context, when the lease has ended: by Unlock and UnlockChan after
	// they have sent the release, and otherwise on the other goroutine.
	Held func(ctx context.Context, e HeldEvent)

	// Called is called after a call to the store that acquires, renews or releases: on a goroutine of the caller who
	// waits for the answer, and on the other one if nobody does.
	Called func(e CalledEvent)

	// Closed is called once, by [Client.Close], after all other hooks have returned. It must not call Close itself.
	Closed func()
}

// A Request is what the events of one request have in common.
type Request struct {
	Op     string   // as in [Error]: lock, try lock, rlock, acquire, lock all, downgrade and so on
	Key    string   // of several keys: the first
	Keys   []string // of several keys: all, which must not be changed; otherwise nil
	Class  string   // see [WithClass]
	Mode   Mode
	Future bool // of [Client.LockChan] and the like
}

// A WaitEvent is a request that begins.
type WaitEvent struct{ Request }

// A WaitedEvent is what a request has come to.
type WaitedEvent struct {
	Request

	// Outcome is acquired, or one of the names that [Refused] and [GivenUp] have in JSON, such as held or timeout.
	Outcome string
	Way     string        // of an acquired lease: one of the names that [Acquired] has in JSON, such as at_once
	Err     error         // why there is no lease
	Waited  time.Duration // since Wait
	Blocker int64         // the token of a lease that was in the way; 0: none is known
}

// A HoldEvent is a lease that a caller gets.
type HoldEvent struct {
	Request

	Token int64  // see [Lease.Token]; of several keys: that of the first
	Way   string // as in [WaitedEvent]; downgraded for [Lease.Downgrade], which has no Wait
}

// A HeldEvent is a lease that has ended.
type HeldEvent struct {
	Request

	Token int64
	End   string        // one of the names that [Ended] has in JSON, such as unlocked or expired
	Err   error         // why: see [Lease.Err]
	Held  time.Duration // since Hold
}

// A CalledEvent is a call to the store that has been answered.
type CalledEvent struct {
	Op     string // acquire, renew or release
	Size   int    // how many requests it carried
	Failed int    // how many of them had an error
	Err    error  // the first error
	Took   time.Duration
}

// WithHooks sets functions that the client calls, for metrics and traces. Given several times, all count: each has the
// context that the one before it has returned. Without the option nothing is called, and nothing costs anything.
func WithHooks(h Hooks) ClientOption {
	return WithHooksFor(func(*Client) (Hooks, error) { return h, nil })
}

// WithHooksFor is WithHooks for hooks that know their client. [New] calls the function when the client works, before it
// returns it, so an option that is given to several clients makes hooks for each. If the function fails, New
// closes the client without waiting for its leases, and returns the error. A nil function is [ErrInvalidOption].
func WithHooksFor(hooks func(c *Client) (Hooks, error)) ClientOption {
	return clientOption(func(s *clientSettings) error {
		if hooks == nil {
			return fmt.Errorf("%w: nil function for hooks", ErrInvalidOption)
		}
		s.hooks = append(s.hooks, hooks)
		return nil
	})
}
