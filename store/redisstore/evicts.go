// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynclock/asynclock-go/internal/redischeck"
)

// evictsWithin bounds the question of warnIfEvicted, which holds up the messages of an inbox.
const evictsWithin = 250 * time.Millisecond

// warnIfEvicted asks a server once whether it deletes keys when its memory is full: a holder's key, too,
// which is then free. The servers of a Cluster usually agree.
func (st *Store) warnIfEvicted() {
	if st.asked.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), evictsWithin)
	defer cancel()
	anyKey := string(appendEpoch(nil, st.settings.prefix, 0)) // it only says where to go
	answer, err := st.ask(ctx, anyKey, []string{redischeck.InfoMemory})
	if err != nil || len(answer) != 3 {
		return
	}
	if policy := redischeck.EvictionPolicy(answer[2]); policy != "" {
		st.log.Add(slog.LevelWarn, "redisstore: the server deletes keys when its memory is full, and a lock that is deleted is free. "+
			"Set maxmemory-policy to noeviction", slog.String("maxmemory-policy", policy))
	}
}
