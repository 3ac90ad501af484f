// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
)

// An observer may begin and end observing when it is told.
func TestObserversMayBeginAndEndObservingWhenTheyLook(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		observe := func(key string, look func()) (stop func()) {
			stop, err := c.Observe(key, asynclock.Observer{Look: func(live bool) {
				if live {
					look()
				}
			}})
			if err != nil {
				w.Fatal(err)
			}
			return stop
		}
		var looks []string
		stop := observe("key", func() {
			looks = append(looks, "first")
			observe("another", func() { looks = append(looks, "another") })()
			observe("key", func() { looks = append(looks, "second") })()
		})
		stop()
		if len(looks) != 3 {
			w.Errorf("got looks of %q, want one of each observer", looks)
		}
	})
}
