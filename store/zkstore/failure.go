// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
)

// failure says what an error of the driver means to asynclock. The cause stays
// wrapped. Of a request that changes something, wrote is set.
func (st *Store) failure(err error, wrote bool) error {
	switch {
	case err == nil, errors.Is(err, asynclock.ErrForeignData), errors.Is(err, asynclock.ErrClosed),
		errors.Is(err, asynclock.ErrUnreachable), errors.Is(err, asynclock.ErrOutcomeUnknown),
		errors.Is(err, asynclock.ErrDenied):
		return err
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: %w", asynclock.ErrDenied, err)
	case st.closed.Load():
		return asynclock.ErrClosed
	case errors.Is(err, zk.ErrNoServer), errors.Is(err, zk.ErrSessionMoved), !wrote:
		return fmt.Errorf("%w: %w", asynclock.ErrUnreachable, err)
	case errors.Is(err, zk.ErrSessionExpired): // and what it may have done is gone with it
		return fmt.Errorf("%w: %w", asynclock.ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", asynclock.ErrOutcomeUnknown, err)
}

// answered reports whether an error is a server's answer to a request that it has
// taken through the leader.
func answered(err error) bool {
	return err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}
