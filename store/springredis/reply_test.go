// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/fuzzreply"
	"github.com/asynclock/asynclock-go/store"
)

// FuzzReplies: whatever comes instead of a script's answer is an error, never a
// grant.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("l\x03i\x01i\x05i\x01"))               // granted
	f.Add([]byte("l\x05i\x03i\x64i\x00i\x00t\x01x"))    // held
	f.Add([]byte("l\x02i\x01i\x00"))                    // released
	f.Add([]byte("l\x02i\xfft\x08shop:key"))            // foreign
	f.Add([]byte("e\x12OOM command not al"))            // refused
	f.Add([]byte("l\x04i\x03i\xfei\x01i\x7ft\x04self")) // held by one of ours, without a TTL
	st, err := newStore("shop", nil)
	if err != nil {
		f.Fatal(err)
	}
	st.conn = new(redisconn.Conn) // to nowhere
	s := newSession(st, "me", func(store.Event) {})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fuzzreply.Message(data)
		if err != nil {
			t.Fatal(err)
		}
		result := rueidis.NewResult(m, nil)
		for _, wait := range []bool{false, true} {
			got := s.readAcquire(&store.AcquireRequest{Key: "key", Owner: "me", Wait: wait}, result)
			if (got.Err == nil) != (got.Status != 0) || got.Status > store.Withdrawn {
				t.Errorf("acquire: got %+v, want a status or an error", got)
			}
			if got.Status == store.Granted && got.Token <= 0 {
				t.Errorf("acquire: got %+v, want no grant without a token", got)
			}
		}
		released := s.readRelease(&store.ReleaseRequest{Key: "key", Owner: "me"}, result)
		if released.WasHeld && (released.Err != nil || released.Cause != nil) || !released.WasHeld && (released.Err == nil) == (released.Cause == nil) {
			t.Errorf("release: got %+v, want an error, a cause, or that it was held", released)
		}
		if renewed := s.readRenew(nil, result); renewed.Err == nil && renewed.Waiters != unknownWaiters {
			t.Errorf("renew: got %+v, want an error or an answer", renewed)
		}
		if info, err := s.readInfo("key", result); err != nil && (info.Held || info.Holder != "") {
			t.Errorf("inspect: got %+v with error %v", info, err)
		}
	})
}
