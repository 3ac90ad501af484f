// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// How long a run of a script takes a real server, beside 10, 1,000 and 100,000 others. That is its own time, without the
// network and the client.
func BenchmarkScriptsBesideMany(b *testing.B) {
	all := loads()
	deadly := dying()
	maps.Copy(all, deadly)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, n := range []int{10, 1000, 100_000} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
				c := join(b, sv.store(b))
				l := all[name]
				l.crowd(10).make(b, sv, "first")
				l.do(c, "first") // so that the server knows the scripts
				ran, took := 0, 0
				for i := 0; b.Loop(); i++ {
					key := "key"
					if l.ends || deadly[name].do != nil {
						key = fmt.Sprint("key", i)
					}
					if i == 0 || key != "key" {
						l.crowd(n).make(b, sv, key)
					}
					runs, usec := sv.evaluated(b)
					l.do(c, key)
					runsAfter, usecAfter := sv.evaluated(b)
					ran, took = ran+runsAfter-runs, took+usecAfter-usec
				}
				b.ReportMetric(float64(took)/float64(ran), "server-µs/script")
				b.ReportMetric(float64(ran)/float64(b.N), "scripts/op")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// evaluated is how many scripts the server has run by their names, and for how many µs.
func (sv *server) evaluated(t testing.TB) (runs, usec int) {
	t.Helper()
	for line := range strings.Lines(sv.Do(t, "INFO", "commandstats")) {
		if _, err := fmt.Sscanf(line, "cmdstat_evalsha:calls=%d,usec=%d", &runs, &usec); err == nil {
			return runs, usec
		}
	}
	return 0, 0
}
