// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestOwnersThatAskNoMoreAreForgotten: an answer that crosses its owner's release leaves
// nothing for good, and those who still wait are known however many there are.
func TestOwnersThatAskNoMoreAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l Waiters
		l.waited("patient")
		for i := range 100 * firstCleaning {
			l.waited(strconv.Itoa(i))
			if i%firstCleaning == 0 {
				time.Sleep(silence / 4)
				l.waited("patient")
			}
		}
		if got := len(l.owners); got > 10*firstCleaning {
			t.Errorf("owners that are known: got %d, want a few thousand", got)
		}
		if got := l.waited("patient"); got < 24*silence {
			t.Errorf("who asks now and then has waited for %v, want the whole time", got)
		}
		l.Forget("patient")
		if got := l.waited("patient"); got != 0 {
			t.Errorf("who was removed and is back has waited for %v, want 0", got)
		}
	})
}
