// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// FuzzEvent: what an inbox is told may come from anybody.
func FuzzEvent(f *testing.F) {
	f.Add("grant owner 1700000000000000 1 4500000 2")
	f.Add("share owner 1700000000000000 1700000000000000 0 4500000 2")
	f.Add("share owner 17 18 0 1 1")
	f.Add("share owner 17 17 1000001 1 1")
	f.Add("contended owner")
	f.Add("forced owner")
	f.Add("wake owner")
	f.Add("grant owner -1 1 1 1")
	f.Add("grant owner 1 1 999999999999999 1")
	f.Fuzz(func(t *testing.T, payload string) {
		e, ok := parseEvent(payload)
		if !ok {
			return
		}
		if !sqlconn.IsField(e.Owner) || !strings.Contains(payload, e.Owner) {
			t.Errorf("%q: got owner %q", payload, e.Owner)
		}
		switch e.Kind {
		case store.EventGrant:
			if e.Grant.Token <= 0 || e.Grant.Fence < 0 || e.Grant.Fence > e.Grant.Token ||
				e.Grant.Weight < 0 || e.Grant.Weight > store.MaxPermits || e.Grant.Reserved != 0 || e.GrantTTL < 0 || e.GrantTTL > store.MaxTTL || e.Waiters < 0 {
				t.Errorf("%q: got %+v, want a grant that can be", payload, e)
			}
		case store.EventQueued, store.EventForced, store.EventWake:
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
	f.Add(`{"clock": 1, "items": [{"s": 1, "token": 5, "fence": 4, "weight": 0, "waiters": 1}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 1, "token": 5, "fence": 6}, {"s": 1, "token": 5, "weight": -1}, {"s": 1, "token": 5, "fence": -1}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 2, "left": 5, "soonest": 3, "mode": 2, "count": 2, "used": 3, "permits": 3, "token": 5}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 1, "held": true, "token": 5, "fence": 6}, {"s": -5}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 6, "limit": 3}, {"s": 6}, {"s": 1, "token": 5, "weight": 1, "limit": -1}, {"s": 2, "left": 5, "ticket": 7, "limit": 1000001}]}`)
	f.Add(`{"clock": 0, "items": []}`)
	f.Add(`{"clock": 1, "items": [{"held": true, "requeue": {"s": 1}}]}`)
	silent := sqltest.Answering(f, func(string, []sqlconn.Item) ([]sqlconn.Answer, error) { return nil, nil })
	st, err := New(f.Context(), silent, WithoutNotifications())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(st.Close)
	joined, err := st.Open("client", func(store.Event) {})
	if err != nil {
		f.Fatal(err)
	}
	s := joined.(*session)
	f.Fuzz(func(t *testing.T, out string) {
		reply, err := sqlconn.ReadReply(out)
		if err != nil {
			return
		}
		for _, a := range reply.Items {
			for _, wait := range []bool{false, true} {
				wantSense(t, s, store.AcquireRequest{Key: "key", Owner: "me", Wait: wait, GrantTTL: time.Second}, a)
			}
		}
	})
}

// wantSense: what the store makes of an answer is an error or a reply that can be.
func wantSense(t *testing.T, s *session, q store.AcquireRequest, a sqlconn.Answer) {
	t.Helper()
	got, err := s.readAcquire(&q, a, "")
	if (err == nil) != (got.Status != 0) {
		t.Errorf("acquire: got %+v and %v, want a status or an error", got, err)
	}
	if got.Status == store.Granted && (got.Token <= 0 || got.Fence < 0 || got.Fence > got.Token || got.Weight < 0 || got.Weight > store.MaxPermits) {
		t.Errorf("acquire: got %+v, want a grant that can be", got)
	}
	if err == nil && (got.Limit < 0 || got.Limit > store.MaxPermits || got.Status == store.TooMuch && got.Limit == 0) {
		t.Errorf("acquire: got %+v, want a limit that can be", got)
	}
	released, err := s.readRelease(&store.ReleaseRequest{Requeue: &q}, a, "")
	if err == nil && released.Requeue == nil {
		t.Errorf("release: got %+v, want an answer to the requeue", released)
	}
	rest, err := s.readRelease(&store.ReleaseRequest{Rest: &store.Share{Mode: store.Shared}}, a, "")
	if err == nil && rest.WasHeld && (rest.Grant.Fence <= 0 || rest.Grant.Fence > rest.Grant.Token) {
		t.Errorf("release that keeps a part: got %+v, want a grant that can be", rest)
	}
	if err := a.Renewed(); err == nil && a.Status != sqlconn.StatusGranted {
		t.Errorf("renew: got that it was, of %+v, want an error", a)
	}
}
