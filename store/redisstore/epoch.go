// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// errHidden: the server does not say which history it has, so the guard that epoch.lua
// describes is impossible.
var errHidden = fmt.Errorf("%w: redisstore: the server hides its replication id", store.ErrUnreachable)

// graceError answers a request that won't wait. It is not asynclock.ErrHeld, for
// the key may well be free.
func graceError(grace time.Duration) error {
	return &store.GraceError{Remaining: grace}
}

// hiddenFor is for how long the guard stays off where a server has hidden its replication id.
// Then a request looks again, because rights change. The look costs it a second command.
const hiddenFor = time.Minute

// grace returns an argument of the scripts for a key: for how long, at least, a server that
// may have forgotten holdings grants nothing. It is 0 where there is no guard.
func (st *Store) grace(key string) time.Duration {
	if until := st.hiding(key).Load(); until != nil && time.Now().Before(*until) {
		return 0
	}
	return st.settings.grace
}

// guard returns the last arguments of the scripts, for a key.
func (st *Store) guard(key string) guard {
	return guard{counterTTL: st.settings.counterTTL, grace: st.grace(key)}
}

// hiding returns until when there is no guard for a key. Each bucket has its own time,
// because the nodes of a Cluster may differ in rights, and a bucket is on one node.
func (st *Store) hiding(key string) *atomic.Pointer[time.Time] {
	if st.conn.Cluster() {
		return &st.hidden[bucketOf(key)]
	}
	return &st.hidden[0]
}

// hides turns the guard off for a while, where the key is.
func (st *Store) hides(key string) {
	until := time.Now().Add(hiddenFor)
	st.hiding(key).Store(&until)
	if !st.unguarded.Swap(true) {
		st.log.Add(slog.LevelWarn, "redisstore: no guard against two holders after a restart or a failover: the server hides its replication id (INFO replication)")
	}
}

// graceSeen logs once per grace that nothing is granted for a while. Each bucket has a grace of its
// own, which begins when the bucket is first used. So the log stays quiet for a further grace after
// the end of one that it has heard of.
func (st *Store) graceSeen(grace time.Duration) {
	now := time.Now()
	quiet, until := st.quiet.Load(), now.Add(grace+st.settings.grace)
	if quiet != nil && until.Before(*quiet) || !st.quiet.CompareAndSwap(quiet, &until) {
		return
	}
	if quiet == nil || now.After(*quiet) {
		st.log.Add(slog.LevelWarn, "redisstore: nothing is granted yet: the server was started or promoted lately, and may have forgotten leases. "+
			"'asynclock grace' shows why, and can end it if nothing was lost. A server without data can't be told from one that has lost its data. In development, use redisstore.WithoutFailoverGrace",
			slog.Duration("for", grace))
	}
}
