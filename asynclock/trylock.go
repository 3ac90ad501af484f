// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// TryLock takes the key if it is free at once: nobody holds it, and nobody is ahead in its queue.
// Otherwise the error is [ErrHeld], as a [*HeldError] that names the holder. TryLock never queues.
// A store that cannot be reached is never reported as [ErrHeld]. If another caller's request for the key is under way
// in this client, TryLock waits for its answer, and for the one to its own if that does not decide. It never waits for
// another's Unlock. The other errors are those of [Client.Lock].
//
// If the holder's client retains keys ([WithRetention]), possibly nobody uses this one. The
// holder's client is then requested to give it back, and TryLock tries once more: after twice the
// time of the first answer, but at least 5 ms.
func (c *Client) TryLock(ctx context.Context, key string, options ...LockOption) (*Lease, error) {
	w := newWaiter(ctx)
	w.Try = true
	return c.lock(w, "try lock", key, options)
}

// tryAgain is the second try of a TryLock after a refusal. The holder's client may only retain the
// key, and will have given it back by then. The caller itself makes the second try, because a
// watchdog may run late.
func (w *waiter) tryAgain(first *machine.Acquire) {
	pause := time.NewTimer(machine.SecondTry(watchdog.Now().Sub(first.Sent), first.Timeout))
	defer pause.Stop()
	if done, _, _ := w.checkResult(); done {
		return // the client was closed
	}
	select {
	case <-w.result: // the client was closed
	case <-w.ctx.Done():
	case <-pause.C:
		if call := w.secondRequest(); call != nil {
			w.state.shard.client.acquire(w.ctx, call)
		}
	}
}

// secondRequest returns another request if the waiter is still the first. It returns nil if the
// waiter has stopped waiting, or if a request is under way.
func (w *waiter) secondRequest() *machine.Acquire {
	sh := w.state.shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return w.state.machine.SecondRequest(&w.Waiter)
}
