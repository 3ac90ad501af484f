// SPDX-License-Identifier: Apache-2.0

package board

import (
	"context"

	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/once"
)

// EndOf says when a run of a job ended. If that is not recorded, it says what follows from who has the job's key now.
func EndOf(ctx context.Context, locks Locker, key string, run *once.RunInfo) string {
	if !run.Ended.IsZero() {
		return plain.Stamp(run.Ended) + ", after " + plain.Seconds(run.Ended.Sub(run.Began))
	}
	switch info, err := locks.Inspect(ctx, key); {
	case err != nil:
		return "not recorded: it runs, was interrupted, or died"
	case !info.Held:
		return "not recorded, and nobody holds the key: it was interrupted, or died"
	case info.Token == run.Token:
		return "not recorded, and its lease lasts: it runs, or died within the TTL"
	}
	return "not recorded, and another one holds the key: it was interrupted, or died"
}
