// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/check"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// BenchmarkHistory judges a long run: how much time and memory that takes bounds
// how long a run can be.
func BenchmarkHistory(b *testing.B) {
	sizes := []int{32_000, 1_000_000}
	if testing.Short() {
		sizes = sizes[:1] // the second takes half a minute
	}
	for _, leases := range sizes {
		b.Run(strconv.Itoa(leases), func(b *testing.B) {
			records := longRun(leases)
			b.ReportAllocs()
			for b.Loop() {
				report := check.History(records, check.Limits{Repair: 8 * time.Second, Turns: 100 * time.Second})
				if report.Leases != leases || len(report.Violations) > 0 {
					b.Fatalf("got %d leases and violations %v, want %d and none", report.Leases, report.Violations[:min(1, len(report.Violations))], leases)
				}
			}
		})
	}
}

// longRun is a history of many leases of 32 keys, with several callers waiting at
// any time, a write under each third lease, one request in ten that failed, and a
// fault each second, at each fourth of which a holder is lost.
func longRun(leases int) (all []history.Record) {
	const keys, waiting = 32, 4
	random := rand.New(rand.NewPCG(1, 2))
	for k := range keys {
		key := fmt.Sprint("k", k)
		now, wrote := ms, int64(0)
		for i := range leases / keys {
			op := fmt.Sprint(key, "/", i)
			asked := max(now-history.Time(random.Int64N(int64(waiting*40*ms))), 1)
			held := history.Time(random.Int64N(int64(30 * ms)))
			token := int64(now) / 1000
			all = append(all, history.Record{
				Kind: history.Held, Op: op, Key: key, How: "Lock", Begin: asked, End: now + ms, Token: token, TTL: 2000 * ms,
			})
			if i%3 == 0 {
				all = append(all, history.Record{Kind: history.Write, Op: op, Key: key, Resource: "file", Token: token, Read: wrote, Wrote: wrote + 1})
				wrote++
			}
			if i%10 == 0 {
				all = append(all, history.Record{Kind: history.Failed, Op: op + "f", Key: key, How: "TryLock", Begin: now, End: now + ms, Error: "held"})
			}
			now += held + 2*ms
			if i%1000 == 0 { // nobody heard of its end
				now += 2000 * ms
				continue
			}
			all = append(all, history.Record{Kind: history.Ended, Op: op, Valid: now - ms, Begin: now - ms, End: now, Unlocked: true})
		}
		for t := history.Time(1); k == 0 && t < now; t += 1000 * ms {
			all = append(all, history.Record{Kind: history.Fault, Fault: "worker paused", Begin: t, End: t + 500*ms})
		}
	}
	return all
}
