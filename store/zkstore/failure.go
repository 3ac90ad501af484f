// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

// failure translates an error of the driver into asynclock's, with the cause wrapped. Set wrote for
// a request that changes something.
func (st *Store) failure(err error, wrote bool) error {
	switch {
	case err == nil, errors.Is(err, store.ErrForeignData), errors.Is(err, store.ErrClosed),
		errors.Is(err, store.ErrUnreachable), errors.Is(err, store.ErrOutcomeUnknown),
		errors.Is(err, store.ErrDenied):
		return err
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	case st.closed.Load():
		return store.ErrClosed
	case errors.Is(err, zk.ErrNoServer), errors.Is(err, zk.ErrSessionMoved), !wrote:
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	case errors.Is(err, zk.ErrSessionExpired): // the effect of the request is gone with it
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
}

// answered reports whether an error is a server's answer to a request that went through the leader.
func answered(err error) bool {
	return err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists)
}
