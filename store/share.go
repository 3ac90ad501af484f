// SPDX-License-Identifier: Apache-2.0

package store

import "fmt"

// A Mode says how much of its key an owner takes.
type Mode uint8

// The modes.
const (
	Exclusive Mode = iota // all of it
	Shared                // a part, beside any number of other Shared owners
	Permits               // Weight parts of Limit
)

// String returns the mode in lower case, as the command shows it.
func (m Mode) String() string {
	switch m {
	case Exclusive:
		return "exclusive"
	case Shared:
		return "shared"
	case Permits:
		return "permits"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// MaxPermits is the largest limit of permits.
const MaxPermits = 1_000_000

// A Share is what an owner takes of a key. The zero Share is all of it. Two owners hold a key at the
// same time only if their shares fit beside each other:
//
//   - An Exclusive owner holds it alone.
//   - Shared owners hold it together.
//   - Owners of Permits hold it together, as long as the sum of their weights is at most the limit in
//     force. That is the stored one of [LimitSession], or otherwise the smallest Limit of them all.
//
// A key has one queue, whatever its waiters take. The first waiter is granted the key as soon as its
// share fits. Then the next one is, and so on. A waiter whose share does not fit blocks all behind
// it. So no waiter starves, and a large request is not passed by smaller ones.
type Share struct {
	Mode   Mode
	Weight int32 // Permits: how many, from 1 to Limit
	Limit  int32 // Permits: how many there are, as this owner believes, up to MaxPermits; it bounds Weight in any case
}

// Check returns an error for a request that makes no sense, or that a store with these features can't
// serve.
func (f Features) Check(share Share, extra int32) error {
	switch {
	case share.Mode > Permits, share.Mode != Permits && (share.Weight != 0 || share.Limit != 0 || extra != 0):
		return fmt.Errorf("%w: no share of a key is %+v", ErrInvalidOption, share)
	case share.Mode == Permits && (share.Weight < 1 || share.Limit < share.Weight || share.Limit > MaxPermits || extra < 0):
		return fmt.Errorf("%w: %d permits of %d, from 1 to %d are allowed", ErrInvalidOption, share.Weight, share.Limit, MaxPermits)
	case share.Mode == Shared && !f.Shared:
		return fmt.Errorf("%w: keys that are shared", ErrUnsupported)
	case share.Mode == Permits && !f.Permits:
		return fmt.Errorf("%w: permits", ErrUnsupported)
	}
	return nil
}

// CheckRest returns an error for a release that keeps a part, if that makes no sense, or a store with
// these features can't do it.
func (f Features) CheckRest(r *ReleaseRequest) error {
	switch {
	case r.Rest == nil:
		return nil
	case r.Rest.Mode == Exclusive, r.Requeue != nil, r.Uncertain, r.Rest.Mode == Shared && r.HoldBack != 0:
		return fmt.Errorf("%w: a release keeps all, or it keeps a part and also ends the owner", ErrInvalidOption)
	}
	return f.Check(*r.Rest, 0)
}

// A SharingSession is a [Session] of a store with Features.Shared that has readers of some keys only.
type SharingSession interface {
	Session

	// CheckShared returns an [ErrUnsupported] for a key without readers, and asks no server. Acquire and a
	// [ReleaseRequest.Rest] refuse readers of such a key by the same error.
	CheckShared(key string) error
}
