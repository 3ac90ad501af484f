// SPDX-License-Identifier: Apache-2.0

package asynclock

import "context"

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
