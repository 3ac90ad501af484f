// SPDX-License-Identifier: Apache-2.0

package machine

// Both reports whether a stake of k has an attempt and a holding. It may have one of them.
func (k *Key) Both() bool {
	for s := &k.stakes; s != nil; s = s.next {
		if s.attempt != nil && s.holding != nil {
			return true
		}
	}
	return false
}

// Queued returns how many waiters k has in its queue.
func (k *Key) Queued() int { return int(k.waiters.n) }

// IdleFutures returns how many futures of k are idle.
func (k *Key) IdleFutures() int { return int(k.futures.idle.n) }
