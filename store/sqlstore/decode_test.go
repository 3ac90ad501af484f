// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// FuzzKeyName: names lead back to their keys, are text that every database takes, and
// begin as their keys do.
func FuzzKeyName(f *testing.F) {
	f.Add("order:42", "order:")
	f.Add("100%", "100%2")
	f.Add("a\x00\"\\\x7f", "a\x00")
	f.Add("世界", "世")
	f.Fuzz(func(t *testing.T, key, other string) {
		if key, ok := keyOf(other); ok && keyName(key) != other {
			t.Errorf("key of %q: got %q, whose name is %q", other, key, keyName(key))
		}
		if checkKey(key) != nil || !utf8.ValidString(other) {
			return
		}
		name := keyName(key)
		if got, ok := keyOf(name); !ok || got != key {
			t.Errorf("key of %q: got %q, %v, want %q", name, got, ok, key)
		}
		if strings.ContainsAny(name, "\x00\n\"\\\x7f") {
			t.Errorf("name of %q: got %q, with characters that it should not have", key, name)
		}
		if got, want := strings.HasPrefix(name, keyName(other)), strings.HasPrefix(key, other); got != want {
			t.Errorf("name of %q begins with that of %q: got %v, want %v", key, other, got, want)
		}
	})
}

// FuzzEvent: what an inbox is told may come from anybody.
func FuzzEvent(f *testing.F) {
	f.Add("grant owner 1700000000000000 1 4500000 2")
	f.Add("contended owner")
	f.Add("forced owner")
	f.Add("grant owner -1 1 1 1")
	f.Add("grant owner 1 1 999999999999999 1")
	f.Fuzz(func(t *testing.T, payload string) {
		e, ok := parseEvent(payload)
		if !ok {
			return
		}
		if !isField(e.Owner) || !strings.Contains(payload, e.Owner) {
			t.Errorf("%q: got owner %q", payload, e.Owner)
		}
		switch e.Kind {
		case store.EventGrant:
			if e.Grant.Token <= 0 || e.Grant.Reserved != 0 || e.GrantTTL < 0 || e.GrantTTL > store.MaxTTL || e.Waiters < 0 {
				t.Errorf("%q: got %+v, want a grant that can be", payload, e)
			}
		case store.EventQueued, store.EventForced:
		default:
			t.Errorf("%q: got kind %d", payload, e.Kind)
		}
	})
}

// FuzzReply: whatever comes instead of a routine's answer is an error, never a grant
// without a token.
func FuzzReply(f *testing.F) {
	f.Add(`{"clock": 1, "items": [{"s": 1, "token": 5, "clocked": true, "waiters": 1}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 2, "left": 5, "ticket": 7, "mark": 9, "rank": 1}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 3, "holder": "a%2", "left": -5}]}`)
	f.Add(`{"clock": 0, "items": []}`)
	f.Add(`{"clock": 1, "items": [{"held": true, "requeue": {"s": 1}}]}`)
	st := &Store{settings: settings{idle: time.Second}}
	s := &session{store: st}
	f.Fuzz(func(t *testing.T, out string) {
		answers, err := st.read(out, time.Now())
		if err != nil {
			return
		}
		for _, a := range answers {
			for _, wait := range []bool{false, true} {
				q := store.AcquireRequest{Key: "key", Owner: "me", Wait: wait, GrantTTL: time.Second}
				got, err := s.readAcquire(&q, a, "")
				if (err == nil) != (got.Status != 0) {
					t.Errorf("acquire: got %+v and %v, want a status or an error", got, err)
				}
				if got.Status == store.Granted && got.Token <= 0 {
					t.Errorf("acquire: got %+v, want no grant without a token", got)
				}
				released, err := s.readRelease(&store.ReleaseRequest{Requeue: &q}, a, "")
				if err == nil && released.Requeue == nil {
					t.Errorf("release: got %+v, want an answer to the requeue", released)
				}
			}
			if got, err := s.readRenew(nil, a); err == nil && a.Status != statusGranted {
				t.Errorf("renew: got %+v, want an error", got)
			}
			_ = a.info("key")
		}
	})
}
