// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"fmt"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// One more permit, beside many that this client has one by one.
func BenchmarkPermitBesideMany(b *testing.B) {
	for _, held := range []int{1, 100, 1000} {
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
			for range held {
				if _, err := s.Acquire(b.Context(), 1); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				l, err := s.Acquire(b.Context(), 1)
				if err != nil {
					b.Fatal(err)
				}
				unlock(b, l)
			}
		})
	}
}
