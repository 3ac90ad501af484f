// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
)

// WantNoTimers checks on each store: when clients and stores are closed, no timer of theirs is armed.
// Goroutines are looked for when all tests are over. Not parallel: what is armed is
// looked for in the whole process. The stores are, for they wait for leases to expire,
// and whoever made a timer is named by its source.
func WantNoTimers(t *testing.T, stores []Store) {
	t.Helper()
	defer timerleak.Watch()()
	t.Run("used", func(t *testing.T) { // what it has opened is closed when it ends
		for _, s := range stores {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				env := s.Prepare(t)(t)
				counterLosesNothing(env)
				tell(t, env.again, anotherGoroutineUnlocks)
				tell(t, env.again, whatNobodyReceivesGoesOn)
			})
		}
	})
	if err := timerleak.Find("github.com/asynclock/asynclock-go/"); err != nil {
		t.Error(err)
	}
}
