// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func TestATTLCountsAsToldForAMinute(t *testing.T) {
	t.Parallel()
	var r reaches
	at := time.Now()
	hour := &store.RenewRequest{Key: "key", TTL: time.Hour}
	minute := &store.RenewRequest{Key: "key", TTL: time.Minute}
	want := func(when string, q *store.RenewRequest, after time.Duration, told bool) {
		t.Helper()
		if got := r.told(q, at.Add(after)); got != told {
			t.Errorf("%s: told of %v: got %t, want %t", when, q.TTL, got, told)
		}
	}
	want("at first", minute, 0, false)
	r.tell(hour, at)
	want("of the same bucket", minute, 0, true)
	r.tell(&store.RenewRequest{Key: "long", TTL: store.MaxTTL}, at)
	want("as long as an epoch remembers", &store.RenewRequest{Key: "long", TTL: store.MaxTTL}, 0, false)
	want("nearly as long", &store.RenewRequest{Key: "long", TTL: store.MaxTTL - time.Minute}, 0, true)
	want("of another bucket", &store.RenewRequest{Key: "another", TTL: time.Minute}, 0, false)
	want("longer", &store.RenewRequest{Key: "key", TTL: time.Hour + 1}, 0, false)
	r.tell(minute, at.Add(30*time.Second))
	want("nearly a minute later", hour, time.Minute-1, true)
	want("a minute later", hour, time.Minute, false)
	r.tell(minute, at.Add(2*time.Minute))
	want("when only a shorter one was told again", hour, 2*time.Minute, false)
	want("the shorter one", minute, 2*time.Minute, true)
}
