// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
)

// A LimitSession is a [Session] that also stores limits of permits. Each session of a store with
// Features.Limits is one.
type LimitSession interface {
	Session

	// SetLimit stores how many permits the key has, from 1 to [MaxPermits]. The number is in force for
	// everyone, instead of the Limits of holders and requests, until the next SetLimit of the key. Zero
	// forgets it, and each one's own Limit counts again.
	//
	//   - A larger limit lets waiters in, in the same step.
	//   - A smaller one takes nothing from anyone. Nothing is granted until enough was given back.
	//   - A waiter whose Weight is above the limit leaves the queue at its turn, and those behind it are
	//     served in the same step. [EventWake] then tells it to ask. Its turn is when it is the first,
	//     and nobody has all of the key. It may ask before, and then leaves at once. It and everyone
	//     who requests as much are answered [TooMuch].
	//   - Owners of Permits are notified by [EventWake].
	//   - Exclusive and Shared owners are not concerned.
	//
	// The limit is data. It lasts whether or not somebody holds the key, and has no TTL. A store that
	// forgets holdings, as in a failover, may forget the limit, too.
	//
	// SetLimit can be repeated. Its error is that of one request of [Session], or of
	// [Features.CheckLimit].
	SetLimit(ctx context.Context, key string, limit int32) error
}

// CheckLimit returns an error for a limit that makes no sense, or that a store with these features
// can't store: [ErrInvalidOption] or [ErrUnsupported].
func (f Features) CheckLimit(limit int32) error {
	switch {
	case limit < 0 || limit > MaxPermits:
		return fmt.Errorf("%w: a limit of %d permits, from 1 to %d are allowed, and 0 to forget it", ErrInvalidOption, limit, MaxPermits)
	case !f.Limits:
		return fmt.Errorf("%w: limits of permits", ErrUnsupported)
	}
	return nil
}
