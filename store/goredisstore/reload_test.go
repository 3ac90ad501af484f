// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// After a failover the messages of all channels are received by nobody. One reading of the topology is enough.
func TestOneReadingIsEnoughForAllChannels(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(reloadPause)} {
		var admitted atomic.Int32
		var all sync.WaitGroup
		for range 256 {
			all.Go(func() {
				if p.admits(at) {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		if got := admitted.Load(); got != 1 {
			t.Errorf("%v after the first: got %d readings, want 1", at.Sub(now), got)
		}
	}
}
