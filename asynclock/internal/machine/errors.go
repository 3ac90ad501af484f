// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// The errors of waiters and leases. Package asynclock has them by the same names, and says what they mean.
var (
	ErrHeld       = errors.New("asynclock: held by another")
	ErrQueueFull  = errors.New("asynclock: wait queue is full")
	ErrTooSlow    = fmt.Errorf("%w: too slow for this TTL", store.ErrUnreachable)
	ErrUnlocked   = errors.New("asynclock: unlocked")
	ErrMaxHold    = fmt.Errorf("%w: maximum hold reached", store.ErrLost)
	ErrNotRenewed = fmt.Errorf("%w: renewals failed until the trust deadline", store.ErrLost)
	ErrPermits    = errors.New("asynclock: more permits than there are")
	ErrGone       = errors.New("nobody can receive the result") // so nobody sees it
)

// A HeldError says who has the key that a waiter was refused, or waits for.
type HeldError struct {
	Holder    string        // its description; empty if unknown
	Token     int64         // 0 if unknown
	Remaining time.Duration // of its TTL; negative if unknown
	Waiters   int           // how many clients are queued in the store
	Used      int           // of a request for permits: how many are out
	Limit     int           // of a request for permits: how many there are; 0: unknown
}

// Error makes it an error of the machine. The shell has one of its own for callers.
func (*HeldError) Error() string { return ErrHeld.Error() }

// tooSlow returns the error of a grant that came after trip, too late for its TTL.
func tooSlow(trip, ttl time.Duration) error {
	return fmt.Errorf("%w: the answer took %v, too long for a TTL of %v", ErrTooSlow, trip.Round(time.Millisecond), ttl)
}
