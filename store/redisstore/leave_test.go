// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Whoever leaves while messages come in does not keep the connection, which others
// share, from being read for longer than redisconn.quitWithin.
func TestLeavingUnderALoadOfMessages(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	const times = 10
	var took []time.Duration
	for range times {
		c := join(t, st)
		ch := c.session.classic.Load().channel
		kit.Eventually(t, "the inbox works", func() bool { return sv.receivers(t, ch) > 0 })
		stop := make(chan struct{})
		var flood sync.WaitGroup
		flood.Go(func() {
			messages := "for i = 1, 50 do redis.call('PUBLISH', KEYS[1], ARGV[1]) end return 1"
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := sv.Try("EVAL", messages, "1", ch.name, strings.Repeat("noise ", 10)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		begin := time.Now()
		if err := c.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(begin))
		close(stop)
		flood.Wait()
	}
	// When leaving waited for up to a second, ten times took eight; now all take less than
	// one. Half of them is looked at, for on a busy machine some may take any time.
	slices.Sort(took)
	if limit := 400 * time.Millisecond; took[times/2] > limit {
		t.Errorf("leaving: took %v, want half of them to take no more than %v", took, limit)
	}
}
