// SPDX-License-Identifier: Apache-2.0

// Package failure tells what the error of a store means for the request that failed.
package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/asynclock/asynclock-go/store"
)

// MayTakeEffect reports whether a request that failed with err may have been executed by the store,
// or may still be executed.
func MayTakeEffect(err error) bool {
	return err != nil && (errors.Is(err, store.ErrOutcomeUnknown) || !errors.Is(err, store.ErrUnreachable))
}

// Transient reports whether repeating the request may help.
func Transient(err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Final reports whether no repetition can help, whoever makes it and however late: the request, the
// user's rights, the data or the store itself would have to be changed.
func Final(err error) bool {
	for _, final := range []error{
		store.ErrClosed, store.ErrInvalidKey, store.ErrInvalidOption, store.ErrForeignData, store.ErrUnsupported, store.ErrDenied,
	} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

// Unreachable makes sure that the error of a silent store matches store.ErrUnreachable, however the
// silence showed.
func Unreachable(err error) error {
	if errors.Is(err, store.ErrUnreachable) {
		return err
	}
	return Join(store.ErrUnreachable, err)
}

// errNotHeld is the error of an unlock if the store does not say why it found nothing.
var errNotHeld = fmt.Errorf("%w: the store had not kept the key for it until the unlock", store.ErrLost)

// Lost returns why a lease that was trusted turned out not to be held when it was unlocked. Cause is what
// the store says; nil: nothing.
func Lost(cause error) error {
	switch {
	case cause == nil:
		return errNotHeld
	case errors.Is(cause, store.ErrLost):
		return cause
	default:
		return Join(store.ErrLost, cause)
	}
}

// Join returns an error in one line that matches both its meaning and its cause.
func Join(meaning, cause error) error { return &joined{meaning, cause} }

type joined struct{ meaning, cause error }

func (e *joined) Error() string   { return e.meaning.Error() + ": " + Text(e.cause) }
func (e *joined) Unwrap() []error { return []error{e.meaning, e.cause} }

// Text returns the error's text without "asynclock: ", so that a message does not say it twice.
func Text(err error) string { return strings.TrimPrefix(err.Error(), "asynclock: ") }
