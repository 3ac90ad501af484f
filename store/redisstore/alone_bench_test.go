// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// BenchmarkAlone takes and gives back all of a key, a reader's share of one, and a permit of one, in turns. Nobody else
// wants them. It reports the medians of the times, and what each costs the server.
func BenchmarkAlone(b *testing.B) {
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
	c, err := asynclock.New(sv.store(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(context.Background()) })
	s, err := c.Semaphore("permits", 1)
	if err != nil {
		b.Fatal(err)
	}
	names := []string{"mutex", "reader", "permit"}
	ways := []func() (*asynclock.Lease, error){
		func() (*asynclock.Lease, error) { return c.Lock(b.Context(), "key") },
		func() (*asynclock.Lease, error) { return c.RLock(b.Context(), "read") },
		func() (*asynclock.Lease, error) { return s.Acquire(b.Context(), 1) },
	}
	times, server := make([][]float64, len(ways)), make([]float64, len(ways))
	const inRow = 100
	for b.Loop() {
		for i, way := range ways {
			before := sv.scripted(b)
			for range inRow {
				began := time.Now()
				l, err := way()
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
				times[i] = append(times[i], micros(time.Since(began)))
			}
			server[i] += sv.scripted(b) - before
		}
	}
	for i, name := range names {
		slices.Sort(times[i])
		b.ReportMetric(times[i][len(times[i])/2], name+"-µs-p50")
		b.ReportMetric(server[i]/float64(len(times[i])), name+"-server-µs")
	}
	b.ReportMetric(0, "ns/op")
}

// scripted is how long the server has run scripts, in µs.
func (sv *server) scripted(b *testing.B) (us float64) {
	b.Helper()
	for line := range strings.Lines(sv.Do(b, "INFO", "commandstats")) {
		if !strings.HasPrefix(line, "cmdstat_eval") {
			continue
		}
		_, rest, _ := strings.Cut(line, "usec=")
		number, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.ParseFloat(number, 64)
		us += n
	}
	return us
}
