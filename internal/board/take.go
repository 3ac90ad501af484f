// SPDX-License-Identifier: Apache-2.0

package board

import (
	"context"
	"errors"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// A Locker has the calls of a client that Take needs.
type Locker interface {
	Inspect(ctx context.Context, key string) (asynclock.Info, error)
	ForceUnlock(ctx context.Context, key string, token int64) (bool, error)
}

// Effects of a Take that returns an error.
const (
	nothingTaken = "nothing was taken"
	mayBeTaken   = "it may have been taken"
)

var errAnother = errors.New("another holds it by now")

// refusals are the errors of requests that have changed nothing.
var refusals = []error{
	asynclock.ErrHeld, asynclock.ErrDenied, asynclock.ErrUnreachable, asynclock.ErrInvalidKey, asynclock.ErrInvalidOption, asynclock.ErrUnsupported,
}

// IsTyped reports whether a user has typed the key, as it is or as it is shown.
func IsTyped(text, key string) bool { return text == key || text == plain.Text(key) }

// Take takes the key from the holder that was shown, and from no other. It reports whether anybody held it. With an
// error, effect says what has become of the key.
func Take(ctx context.Context, locks Locker, shown asynclock.Info) (taken bool, effect string, err error) {
	if shown.Token == 0 { // ForceUnlock would take it from whoever holds it
		info, err := locks.Inspect(ctx, shown.Key)
		if err == nil && info.Held && (info.Token != 0 || info.Holder != shown.Holder) {
			err = errAnother
		}
		if err != nil || !info.Held {
			return false, nothingTaken, err
		}
	}
	taken, err = locks.ForceUnlock(ctx, shown.Key, shown.Token)
	for _, refused := range refusals {
		if errors.Is(err, refused) {
			return taken, nothingTaken, err
		}
	}
	return taken, mayBeTaken, err
}
