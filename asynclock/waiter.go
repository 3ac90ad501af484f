// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A waiter is one pending acquisition: a call of Lock or TryLock, or a channel
// that LockChan returned. Its fields are guarded by its key's shard.
type waiter struct {
	state    *keyState
	ahead    *waiter // in the key's queue
	behind   *waiter
	settings *lockSettings
	ctx      context.Context  //nolint:containedctx // bounds the waiting; its values go into the lease
	since    watchdog.Instant // when it began to wait
	verdict  *verdict         // what a TryLock waits for before it may do anything else; nil: nothing

	stage      stage
	future     bool  // made by LockChan: the grant must be claimed
	try        bool  // made by TryLock: never waits
	watchPlace int32 // index in watch
	watch      *watch
	result     chan Result // has room for one; nil until somebody listens
	lease      *Lease      // set once granted
	err        error       // set once ended
}

// A stage is the progress of a waiter.
type stage uint8

const (
	queued  stage = iota // in the key's queue
	joining              // the caller is under a lease of the key, which the claim will share
	granted              // has a lease that nobody has claimed
	claimed              // the lease is the caller's
	ended                // has an error instead
)

// sendLocked puts the waiter's one result into its channel.
func (w *waiter) sendLocked() {
	if w.result != nil {
		w.result <- Result{waiter: w}
	}
}

// failLocked ends the waiter with err, if it is still queued or unclaimed. The caller has already
// removed it from the queue, or has taken back its grant.
func (w *waiter) failLocked(err error) {
	sent := w.stage != queued // its result is already in the channel
	w.stage, w.err = ended, err
	w.lease = nil
	if stop := w.state.shard.unwatchLocked(w); stop != nil {
		w.state.client.stops.Add(0, stop)
	}
	if !sent {
		w.sendLocked()
	}
}

// A waiterQueue holds the waiters of one key in this client, in the order in which they came.
type waiterQueue struct {
	first, last *waiter
	n           int
}

func (q *waiterQueue) push(w *waiter) {
	w.ahead = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.behind = w
	}
	q.last = w
	q.n++
}

func (q *waiterQueue) remove(w *waiter) {
	if w.ahead == nil {
		q.first = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind == nil {
		q.last = w.ahead
	} else {
		w.behind.ahead = w.ahead
	}
	w.ahead, w.behind = nil, nil
	q.n--
}

func (q *waiterQueue) pop() *waiter {
	w := q.first
	if w != nil {
		q.remove(w)
	}
	return w
}
