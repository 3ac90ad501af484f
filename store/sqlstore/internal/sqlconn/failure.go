// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/puddle/v2"

	"github.com/asynclock/asynclock-go/store"
)

// SQLSTATEs that our routines raise.
const (
	stateNotReadCommitted = "AL001"
	stateOtherSchema      = "AL002"
	stateNoFloor          = "AL003"
)

// neverSent returns the error of a request that the server has not seen. It does not look for
// the end of a context, because a dial that took too long looks the same.
func neverSent(err error, state string, states map[string]error) error {
	if errors.Is(meaning(state, states), store.ErrDenied) {
		return fmt.Errorf("%w: %w", store.ErrDenied, err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
}

var errServer = errors.New("database: unexpected error of the server")

func meaning(state string, states map[string]error) error {
	if means := states[state]; means != nil {
		return means
	}
	if means := states[state[:min(len(state), 2)]]; means != nil {
		return means
	}
	return errServer
}

// isClosedPool reports whether the application has closed its pool, after which every request
// fails. The error of database/sql can be recognized only by its text.
func isClosedPool(err error) bool {
	return errors.Is(err, puddle.ErrClosedPool) || strings.Contains(err.Error(), "sql: database is closed")
}

// failure classifies an error that no server sent.
func failure(err error) error {
	var dial *net.OpError
	switch {
	case isClosedPool(err):
		return fmt.Errorf("%w: %w", store.ErrClosed, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	// The request may have been sent or not.
	return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
}
