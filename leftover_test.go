// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/timerleak"
)

// Over every store: when clients and stores are closed, no timer of theirs is armed.
// Goroutines are looked for when all tests are over. Not parallel: what is armed is
// looked for in the whole process. The stores are, for they wait for leases to expire,
// and whoever made a timer is named by its source.
func TestWhatIsClosedHasNoTimer(t *testing.T) {
	defer timerleak.Watch()()
	t.Run("used", func(t *testing.T) { // what it has opened is closed when it ends
		for _, s := range stores {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				p := s.prepare(t)(t)
				counterLosesNothing(p)
				tell(t, p.again, anotherGoroutineUnlocks)
				tell(t, p.again, unclaimedGrantGoesOn)
			})
		}
	})
	if err := timerleak.Find("github.com/asynclock/asynclock-go/"); err != nil {
		t.Error(err)
	}
}
