// SPDX-License-Identifier: Apache-2.0

//go:build unix

package asynclock_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// BenchmarkRenewPermit renews one permit of many that the client has one by one.
func BenchmarkRenewPermit(b *testing.B) {
	for _, held := range []int{1, 100, 1000, 4000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer abandon(c)
			s, err := c.Semaphore("key", 2*held)
			if err != nil {
				b.Fatal(err)
			}
			leases := make([]*asynclock.Lease, held)
			for i := range leases {
				if leases[i], err = s.Acquire(b.Context(), 1, asynclock.WithTTL(time.Hour)); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			for b.Loop() {
				if err := leases[i%held].Renew(b.Context(), time.Hour); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkPermitRenewals is the renewals of many permits that the client has one by one. It reports the CPU time of each.
func BenchmarkPermitRenewals(b *testing.B) {
	for _, held := range []int{100, 1000, 4000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
			if err != nil {
				b.Fatal(err)
			}
			defer abandon(c)
			s, err := c.Semaphore("key", held)
			if err != nil {
				b.Fatal(err)
			}
			for range held {
				if _, err := s.Acquire(b.Context(), 1, asynclock.WithTTL(12*time.Second)); err != nil {
					b.Fatal(err)
				}
			}
			time.Sleep(5 * time.Second)
			var before, after syscall.Rusage
			for b.Loop() {
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
				renewed := c.Stats().Renewals.Done
				time.Sleep(5 * time.Second)
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
				b.ReportMetric(float64(after.Utime.Nano()-before.Utime.Nano())/1e3/float64(c.Stats().Renewals.Done-renewed), "µs/renewal")
			}
		})
	}
}
