// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"
	"time"
)

// Eventually waits until what is true. The limit, which matters only if it never is,
// is twice the longest pause of an inbox.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
