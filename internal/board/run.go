// SPDX-License-Identifier: Apache-2.0

package board

import (
	"context"

	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/once"
)

// EndOf says when a run of a job ended. If that is not recorded, it says what follows from who has the job's key now. The
// run may have ended after it was looked for, so last looks for it once more.
func EndOf(ctx context.Context, locks Locker, key string, run once.RunInfo, last func() (once.RunInfo, error)) string {
	if !run.Ended.IsZero() {
		return endOf(run)
	}
	info, err := locks.Inspect(ctx, key)
	if err == nil && info.Held && info.Token == run.Token {
		return "not recorded, and its lease lasts: it runs, or died within the TTL"
	}
	now, lastErr := last()
	switch {
	case err != nil, lastErr != nil, now.Token != run.Token:
		return "not recorded: it runs, was interrupted, or died"
	case !now.Ended.IsZero():
		return endOf(now)
	case !info.Held:
		return "not recorded, and nobody holds the key: it was interrupted, or died"
	}
	return "not recorded, and another one holds the key: it was interrupted, or died"
}

func endOf(run once.RunInfo) string {
	return plain.Stamp(run.Ended) + ", after " + plain.Seconds(run.Ended.Sub(run.Began))
}
