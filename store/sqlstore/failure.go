// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/asynclock"
)

// postgresStates says what a SQLSTATE means, or the class that its first two
// characters are. None of these errors leaves anything done.
var postgresStates = map[string]error{
	"08":    asynclock.ErrUnreachable, // connection
	"53":    asynclock.ErrUnreachable, // out of connections, memory, disk
	"55P03": asynclock.ErrUnreachable, // lock_timeout
	"57P01": asynclock.ErrUnreachable, // shutting down
	"57P02": asynclock.ErrUnreachable, // crashed
	"57P03": asynclock.ErrUnreachable, // starting up
	"57014": asynclock.ErrUnreachable, // statement_timeout
	"25006": asynclock.ErrUnreachable, // a replica: a failover is under way
	"40":    asynclock.ErrUnreachable, // rolled back, and again each time
	"28":    asynclock.ErrDenied,
	"42501": asynclock.ErrDenied,
	"3D000": asynclock.ErrDenied, // no such database
}

// postgresRetries are those for which the server says: do it again.
var postgresRetries = map[string]bool{"40001": true, "40P01": true}

// What our routines raise.
const (
	stateNotReadCommitted = "AL001"
	stateOtherSchema      = "AL002"
)

// sqlState finds the SQLSTATE, by the method that pgx and others have.
func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

func postgresFailure(err error) error {
	state := sqlState(err)
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) || pgconn.SafeToRetry(err) {
		return neverSent(err, state, postgresStates)
	}
	if state != "" {
		return fmt.Errorf("%w: %w", meaning(state, postgresStates), err)
	}
	return failure(err)
}

// neverSent is the error of a request that the server has not seen. A dial that took
// too long passes for a context's end, so that is not asked first.
func neverSent(err error, state string, states map[string]error) error {
	if errors.Is(meaning(state, states), asynclock.ErrDenied) {
		return fmt.Errorf("%w: %w", asynclock.ErrDenied, err)
	}
	return fmt.Errorf("%w: %w", asynclock.ErrUnreachable, err)
}

var errServer = errors.New("sqlstore: unexpected error of the server")

func meaning(state string, states map[string]error) error {
	if means := states[state]; means != nil {
		return means
	}
	if means := states[state[:min(len(state), 2)]]; means != nil {
		return means
	}
	return errServer
}

// failure says what an error means that no server sent.
func failure(err error) error {
	var dial *net.OpError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, driver.ErrBadConn):
		return fmt.Errorf("%w: %w", asynclock.ErrUnreachable, err)
	}
	// Sent or not, there is no telling.
	return fmt.Errorf("%w: %w", asynclock.ErrOutcomeUnknown, err)
}
