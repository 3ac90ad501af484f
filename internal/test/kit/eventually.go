// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"
	"time"
)

// Eventually waits until what is true, and asks ever less often. The limit, which matters
// only if it never is, is twice the longest pause of an inbox.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	const limit, longest = time.Minute, 10 * time.Millisecond
	for begin := time.Now(); !is(); {
		waited := time.Since(begin)
		if waited > limit {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(min(time.Millisecond+waited/20, longest))
	}
}
