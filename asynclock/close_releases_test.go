// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A store that has very many releases to confirm takes longer than a second. Close waits on while the
// store confirms them and its context lasts.
func TestCloseWaitsWhileReleasesAreConfirmed(t *testing.T) {
	const (
		releases = 10
		apart    = 300 * time.Millisecond // one confirmation to the next
	)
	for _, c := range []struct {
		name      string
		confirmed int           // releases; the store is silent about the others
		ends      time.Duration // of the context
		want      time.Duration
	}{
		{"all are confirmed", releases, time.Hour, releases * apart},
		{"none is", 0, time.Hour, closeGrace},
		{"the store falls silent", 2, time.Hour, 2 * closeGrace},
		{"the context has ended", releases, 0, closeGrace},
		{"the context ends", releases, closeGrace + apart, 2 * closeGrace},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &Client{unused: make(chan struct{}, 1)}
				client.closing.Store(true)
				client.underWay.Store(releases)
				var confirming sync.WaitGroup
				confirming.Go(func() {
					for range c.confirmed {
						time.Sleep(apart)
						client.leaveOf(&client.underWay)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				began := time.Now()
				client.awaitReleases(ctx)
				if took := time.Since(began); took != c.want {
					t.Errorf("waited %v, want %v", took, c.want)
				}
				confirming.Wait()
			})
		})
	}
}
