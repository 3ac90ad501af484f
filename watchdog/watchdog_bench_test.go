// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"testing"
	"time"
)

// BenchmarkSetRemove is what taking and giving back a key costs, with as many
// others scheduled.
func BenchmarkSetRemove(b *testing.B) {
	for name, others := range map[string]int{"alone": 0, "among 100000": 100_000} {
		b.Run(name, func(b *testing.B) {
			w := New()
			b.Cleanup(func() { w.Close() })
			later := Now().Add(time.Hour)
			for i := range others {
				w.Set(&Entry{Task: idle{}}, later.Add(time.Duration(i)))
			}
			e := &Entry{Task: idle{}}
			b.ReportAllocs()
			for b.Loop() {
				w.Set(e, Now().Add(2*time.Hour))
				w.Remove(e)
			}
		})
	}
}

type idle struct{}

func (idle) Fire(Instant) {}
