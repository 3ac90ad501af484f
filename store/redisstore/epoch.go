// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// errHidden: the server does not say what history it has, so that the guard that
// epoch.lua describes can't be had.
var errHidden = fmt.Errorf("%w: redisstore: the server hides its replication id", asynclock.ErrUnreachable)

// graceError answers a request that won't wait. It is not asynclock.ErrHeld, for
// the key may well be free.
func graceError(grace time.Duration) error {
	return fmt.Errorf("%w: redisstore: the server was started or promoted lately, and grants nothing for %v", asynclock.ErrUnreachable, grace)
}

// grace is what scripts are told: for how long, at least, a server grants nothing
// that may have forgotten holdings; 0 where there is no guard.
func (st *Store) grace() time.Duration {
	if st.hidden.Load() {
		return 0
	}
	return st.settings.grace
}

// hides turns the guard off, for this store and for good.
func (st *Store) hides() {
	if !st.hidden.Swap(true) {
		st.log.Add(slog.LevelWarn, "redisstore: no guard against two holders after a restart or a failover: the server hides its replication id (INFO replication)")
	}
}

// graceSeen says once per grace that nothing is granted for a while. Each bucket has
// its own, and they begin at about the same time.
func (st *Store) graceSeen(grace time.Duration) {
	now := time.Now()
	quiet := st.quiet.Load()
	if quiet != nil && now.Before(*quiet) {
		return
	}
	until := now.Add(grace)
	if st.quiet.CompareAndSwap(quiet, &until) {
		st.log.Add(slog.LevelWarn, "redisstore: a server was started or promoted lately; nothing is granted until the leases that it may have forgotten have ended",
			slog.Duration("for", grace))
	}
}
