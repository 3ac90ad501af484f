// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"time"
)

// A store returns one of these errors, or an error that wraps one. Package asynclock has the
// same values by the same names, for its users.
var (
	// ErrUnreachable: the store can't be reached, or refuses for now (it is
	// loading, failing over, out of memory). Nothing happened.
	ErrUnreachable = errors.New("asynclock: store unreachable")
	// ErrGrace: the server may have forgotten holdings, because it was started or promoted
	// lately. It grants nothing until they have ended. [GraceError] says for how long. It is also
	// an ErrUnreachable.
	ErrGrace = fmt.Errorf("%w: grants nothing yet", ErrUnreachable)
	// ErrOutcomeUnknown: the request was sent and no reply came.
	ErrOutcomeUnknown = errors.New("asynclock: outcome unknown")

	// ErrLost is what the three below have in common: the holding is over.
	ErrLost = errors.New("asynclock: lease lost")
	// ErrExpired: nobody holds the key.
	ErrExpired = fmt.Errorf("%w: expired", ErrLost)
	// ErrStolen: another owner holds the key.
	ErrStolen = fmt.Errorf("%w: another owner has the key", ErrLost)
	// ErrForced: somebody took the key by force.
	ErrForced = fmt.Errorf("%w: unlocked by force", ErrLost)

	// ErrClosed: the session is closed.
	ErrClosed = errors.New("asynclock: client closed")

	// ErrInvalidKey: the key is empty, too long or not UTF-8.
	ErrInvalidKey = errors.New("asynclock: invalid key")
	// ErrInvalidOption: an option or argument has a value that makes no sense.
	ErrInvalidOption = errors.New("asynclock: invalid option")
	// ErrForeignData: what is stored under the key was not written by this
	// library, or was damaged. Nothing was changed.
	ErrForeignData = errors.New("asynclock: foreign data under the key")
	// ErrUnsupported: the store can't do that, by its [Features]. Nothing was changed.
	ErrUnsupported = errors.New("asynclock: not supported by the store")
	// ErrDenied: the store does not let this user do that.
	ErrDenied = errors.New("asynclock: denied by the store")
)

// A GraceError is [ErrGrace] with its end.
type GraceError struct {
	Remaining time.Duration // of the time in which the server grants nothing
}

func (e *GraceError) Error() string {
	round := 100 * time.Millisecond
	if e.Remaining < time.Second {
		round = time.Millisecond
	}
	return fmt.Sprintf("asynclock: the server was started or promoted lately, and grants nothing for %v yet", e.Remaining.Round(round))
}

// Unwrap returns ErrGrace.
func (e *GraceError) Unwrap() error { return ErrGrace }
