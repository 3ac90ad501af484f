// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit/fuzzreply"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// Whatever comes instead of a script's answer is an error, never a grant.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("l\x04i\x01i\x05i\x00i\x01"))                      // granted
	f.Add([]byte("l\x08i\x02i\x00i\x64i\x07i\x08i\x00i\x05t\x01x")) // waiting
	f.Add([]byte("l\x05i\x03i\x05i\x64i\x00t\x01x"))                // held
	f.Add([]byte("l\x02i\xfft\x03key"))                             // foreign
	f.Add([]byte("l\x06i\x09i\x05i\x00i\x03i\x00i\x00"))            // a share granted
	f.Add([]byte("l\x02i\x0ai\x05"))                                // too much
	f.Add([]byte("l\x03i\x04i\x05i\x03"))                           // full, of permits
	f.Add([]byte("l\x01i\x08"))                                     // shared
	f.Add([]byte("i\x08"))                                          // shared
	f.Add([]byte("l\x07i\x01i\x05i\x64t\x01xi\x01t\x01yi\x07"))     // inspected
	f.Add([]byte("i\x01"))
	f.Add([]byte("n"))
	st := onMiniredis(f).newStore(f)
	s := &session{store: st}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fuzzreply.Message(data)
		if err != nil {
			t.Fatal(err)
		}
		ours := readAll(t, s, redisdriver.RueidisResult(rueidis.NewResult(m, nil)))
		if value, err := m.ToAny(); err == nil { // another library gives the same without rueidis' types
			if theirs := readAll(t, s, redisdriver.ValueResult(value)); theirs != ours {
				t.Errorf("by another driver: got %s, want %s", theirs, ours)
			}
		}
	})
}

// readAll reads a result as the answer of each script, and describes what was read.
func readAll(t *testing.T, s *session, result redisdriver.Result) string {
	t.Helper()
	r := newReply(result)
	got, _ := s.acquireReply(&r, &store.AcquireRequest{WaiterTTL: long}, noAddress)
	if (got.Err == nil) != (got.Status != 0) || got.Status > store.TooMuch {
		t.Errorf("acquire: got %+v, want a status or an error", got)
	}
	released, wide := s.releaseReply(&store.ReleaseRequest{}, result, noAddress)
	if wide != errors.Is(released.Err, errWide) || released.WasHeld && (released.Err != nil || released.Cause != nil) || !released.WasHeld && (released.Err == nil) == (released.Cause == nil) {
		t.Errorf("release: got %+v, want an error, a cause, or that it was held", released)
	}
	fast, repeat := s.releaseFastReply(&store.ReleaseRequest{}, result)
	if fast.Err != nil && fast.WasHeld || repeat && fast != (store.ReleaseReply{}) && !errors.Is(fast.Err, errWide) {
		t.Errorf("fast release: got %+v, %t, want an error, an answer, or that it is to be made again", fast, repeat)
	}
	again, _ := s.releaseReply(&store.ReleaseRequest{Requeue: &store.AcquireRequest{WaiterTTL: long}}, result, noAddress)
	if again.Err == nil && again.Requeue == nil {
		t.Errorf("release with requeue: got %+v, want an error or both answers", again)
	}
	renewed := make([]store.RenewReply, 2)
	s.renewReplies(renewed, []int{0, 1}, result)
	info, _, err := s.store.info("key", result)
	if err != nil && (info.Held || info.Queue != nil) {
		t.Errorf("inspect: got %+v with error %v", info, err)
	}
	failed := func(err error) bool { return err != nil }
	return fmt.Sprintln(got.Status, got.Token, got.Remaining, got.Holder, failed(got.Err), released.WasHeld, released.Cause, failed(released.Err),
		fast.WasHeld, repeat, failed(again.Err), renewed[0].Waiters, failed(renewed[0].Err), info.Held, info.Holder, len(info.Queue), failed(err))
}
