// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// BenchmarkResignToObserver is a leader that resigns while 100 clients observe, each with connections of its own.
// p50-µs and p99-µs are the times from the call of Resign to the observer's channel, over all observers. The last one
// is what its slowest observer took, at p50.
func BenchmarkResignToObserver(b *testing.B) {
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
	newClient := func(st *Store) *asynclock.Client {
		c, err := asynclock.New(st)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close(context.Background()) })
		return c
	}
	leading := newClient(sv.store(b))
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	observers := make([]<-chan elect.Leader, 100)
	for i := range observers {
		st := sv.newStore(b)
		var err error
		if observers[i], err = elect.Observe(ctx, newClient(st), "leader"); err != nil {
			b.Fatal(err)
		}
		for <-observers[i]; !isObserving(st); { // nobody leads
			time.Sleep(time.Millisecond)
		}
	}
	all, slowest := resignations(b, leading, observers)
	slices.Sort(all)
	slices.Sort(slowest)
	us := func(d time.Duration) float64 { return float64(d.Microseconds()) }
	b.ReportMetric(us(all[len(all)/2]), "p50-µs")
	b.ReportMetric(us(all[len(all)*99/100]), "p99-µs")
	b.ReportMetric(us(slowest[len(slowest)/2]), "slowest-p50-µs")
}

// isObserving reports whether all that the store observes comes through.
func isObserving(st *Store) bool {
	st.hub.mu.Lock()
	defer st.hub.mu.Unlock()
	for _, b := range st.hub.buckets {
		if !b.live {
			return false
		}
	}
	return len(st.hub.buckets) > 0
}

// resignations lets a term begin and end, again and again. It returns how long each observer took to see an end, and
// how long the slowest of each took.
func resignations(b *testing.B, leading *asynclock.Client, observers []<-chan elect.Leader) (all, slowest []time.Duration) {
	b.Helper()
	took := make(chan time.Duration, len(observers))
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		term, err := (<-elect.Campaign(ctx, leading, "leader")).Term()
		if err != nil {
			b.Fatal(err)
		}
		cancel() // the term goes on, and nobody campaigns for the next one
		for _, leaders := range observers {
			for l := range leaders {
				if l.Token == term.Token() {
					break
				}
			}
		}
		start := make(chan struct{})
		var begun time.Time
		for _, leaders := range observers {
			go func() { // ends with the term
				<-start
				for l := range leaders {
					if l.Token == 0 {
						break
					}
				}
				took <- time.Since(begun)
			}()
		}
		begun = time.Now()
		close(start)
		if err := term.Resign(b.Context()); err != nil {
			b.Fatal(err)
		}
		longest := time.Duration(0)
		for range observers {
			d := <-took
			all, longest = append(all, d), max(longest, d)
		}
		slowest = append(slowest, longest)
	}
	return all, slowest
}
