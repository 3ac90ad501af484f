// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// MaxToken is the largest token or ticket from which scripts continue; by the clock it is the year
// 2255. Scripts count in doubles, which are exact up to MaxGiven. The few numbers that one script
// adds are therefore exact too.
const (
	MaxToken = 9e15
	MaxGiven = 1<<53 - 1
)

// Left returns what remains of a TTL by what PTTL answers: -2 without a key and -1 without a TTL. Programs
// that are not ours may have set a TTL that no Duration can say.
func Left(pttl int64) time.Duration {
	if pttl < -1 {
		return 0
	}
	return time.Duration(min(pttl, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// CheckKey returns an error unless key can name a lock. The client of asynclock.New checks this
// before each request; other callers may not.
func CheckKey(key string) error {
	if key == "" || len(key) > store.MaxKeyLen || !utf8.ValidString(key) {
		return fmt.Errorf("%w: must be UTF-8 of 1 to %d bytes", store.ErrInvalidKey, store.MaxKeyLen)
	}
	return nil
}

// CheckOwner returns an error unless owner is valid.
func CheckOwner(owner string) error {
	if !IsField(owner) {
		return fmt.Errorf("%w: owner must be printable ASCII without spaces", store.ErrInvalidOption)
	}
	return nil
}

// CheckAcquire returns an error for a request that makes no sense, or that a store with these
// features can't serve.
func CheckAcquire(q *store.AcquireRequest, f store.Features) error {
	if err := CheckOwner(q.Owner); err != nil {
		return err
	}
	if q.TTL <= 0 {
		return fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)
	}
	return f.Check(q.Share, q.Extra)
}

// CheckRelease returns an error for a request that makes no sense, or that a store with these
// features can't serve.
func CheckRelease(q *store.ReleaseRequest, f store.Features) error {
	if err := CheckHolding(q.Key, q.Owner, q.Token); err != nil {
		return err
	}
	if q.HoldBack < 0 || q.Requeue != nil && q.Requeue.Key != q.Key {
		return fmt.Errorf("%w: a negative time to keep, or a requeue for another key", store.ErrInvalidOption)
	}
	return f.CheckRest(q)
}

// CheckHolding checks the arguments of Renew and Release.
func CheckHolding(key, owner string, token int64) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := CheckOwner(owner); err != nil {
		return err
	}
	if token < 0 || token > MaxToken {
		return fmt.Errorf("%w: token %d", store.ErrInvalidOption, token)
	}
	return nil
}
