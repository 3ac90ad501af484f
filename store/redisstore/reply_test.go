// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"encoding/binary"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Whatever comes instead of a script's answer is an error, never a grant.
func FuzzReplies(f *testing.F) {
	f.Add([]byte("l\x04i\x01i\x05i\x00i\x01"))                  // granted
	f.Add([]byte("l\x05i\x02i\x00i\x64i\x07i\x08"))             // waiting
	f.Add([]byte("l\x05i\x03i\x05i\x64i\x00t\x01x"))            // held
	f.Add([]byte("l\x02i\xfft\x03key"))                         // foreign
	f.Add([]byte("l\x07i\x01i\x05i\x64t\x01xi\x01t\x01yi\x07")) // inspected
	f.Add([]byte("i\x01"))
	f.Add([]byte("n"))
	st := &Store{}
	s := &session{store: st}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMessage(t, data)
		result := rueidis.NewResult(m, nil)
		r := newReply(result)
		got := s.acquireReply(&r, &asynclock.AcquireRequest{Liveness: long}, noAddress)
		if (got.Err == nil) != (got.Status != 0) || got.Status > asynclock.Gone {
			t.Errorf("acquire: got %+v, want a status or an error", got)
		}
		released := s.releaseReply(&asynclock.ReleaseRequest{}, result, noAddress)
		if released.Err != nil && released.WasHeld {
			t.Errorf("release: got %+v, want an error or an answer", released)
		}
		again := s.releaseReply(&asynclock.ReleaseRequest{Requeue: &asynclock.AcquireRequest{Liveness: long}}, result, noAddress)
		if again.Err == nil && again.Requeue == nil {
			t.Errorf("release with requeue: got %+v, want an error or both answers", again)
		}
		renewed := make([]asynclock.RenewReply, 2)
		s.renewReplies(renewed, []int{0, 1}, result)
		if info, err := st.info("key", result); err != nil && (info.Held || info.Queue != nil) {
			t.Errorf("inspect: got %+v with error %v", info, err)
		}
	})
}

// newMessage makes a message of data: i and an integer of one byte, t and a text
// behind its length, l and a list behind its length, n for null, b for true.
// What is missing is null.
func newMessage(t *testing.T, data []byte) (m rueidis.RedisMessage) {
	t.Helper()
	wire, _ := appendMessage(make([]byte, 7), data, 3) // 7 bytes of TTL
	if err := m.CacheUnmarshalView(wire); err != nil {
		t.Fatal(err)
	}
	return m
}

// appendMessage appends the form in which rueidis caches messages.
func appendMessage(wire, data []byte, depth int) (_, rest []byte) {
	header := func(kind byte, n int64) { wire = binary.BigEndian.AppendUint64(append(wire, kind), uint64(n)) }
	kind, length := byte('n'), 0
	if len(data) > 0 {
		kind, data = data[0], data[1:]
	}
	if len(data) > 0 && kind != 'n' && kind != 'b' {
		length, data = int(int8(data[0])), data[1:]
	}
	switch {
	case kind == 'i':
		header(':', int64(length))
	case kind == 't':
		n := min(max(length, 0), len(data))
		header('$', int64(n))
		wire, data = append(wire, data[:n]...), data[n:]
	case kind == 'l' && depth > 0:
		n := min(max(length, 0), 20)
		header('*', int64(n))
		for range n {
			wire, data = appendMessage(wire, data, depth-1)
		}
	case kind == 'b':
		header('#', 1)
	default:
		header('_', 0)
	}
	return wire, data
}
