// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/pubsub"
)

// FuzzMessage: every message is passed on unchanged, except those that look like a probe, which are
// ignored. A forged probe proves nothing.
func FuzzMessage(f *testing.F) {
	for _, payload := range []string{"", "g owner 1 100 0 1", pubsub.ProbePrefix, pubsub.ProbePrefix + "AAAA", "\x00\xff", strings.Repeat("x", 1<<16)} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		inBubble(t, func(f *fakeSource) { f.deaf = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
			synctest.Wait()
			f.deliver("before")
			f.deliver(payload)
			f.deliver("after")
			want := []string{"before", payload, "after"}
			if strings.HasPrefix(payload, pubsub.ProbePrefix) {
				want = []string{"before", "after"}
			}
			told.want(t, want...)
			wantLive(t, inbox, false)
		})
	})
}
