// SPDX-License-Identifier: Apache-2.0

package batch

import "testing"

// BenchmarkAdd is a request's way through a queue.
func BenchmarkAdd(b *testing.B) {
	q := New(256, 2, 0, func(int, []int) {})
	b.Cleanup(q.Close)
	b.ReportAllocs()
	for b.Loop() {
		q.Add(0, 1)
	}
}
