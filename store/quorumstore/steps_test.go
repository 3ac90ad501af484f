// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A side is a store with three clients.
type side struct {
	sessions [3]store.Session
	told     chan string // owners that are to ask
	last     int64       // the largest token granted
}

func newSide(t *testing.T, st store.Store) *side {
	t.Helper()
	s := &side{told: make(chan string, 1000)}
	for i := range s.sessions {
		session, err := st.Open(fmt.Sprint("client", i), func(e store.Event) {
			if e.Kind == store.EventGrant || e.Kind == store.EventWake {
				s.told <- e.Owner
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Close(t.Context()) })
		s.sessions[i] = session
	}
	return s
}

// A step is done on one side. Its outcome has to be the same on both.
type step func(p *pair, o *owner, s store.Session, n int) (outcome string)

func acquire(p *pair, o *owner, s store.Session, n int) string {
	var reply store.AcquireReply
	for range 20 {
		r := o.AcquireRequest
		r.Ticket = o.tickets[n]
		reply = s.Acquire(p.Context(), []store.AcquireRequest{r})[0]
		if reply.Recheck == 0 {
			break
		}
		time.Sleep(reply.Recheck)
	}
	o.status[n], o.tickets[n] = reply.Status, reply.Ticket
	if last := &p.sides[n].last; reply.Status == store.Granted {
		if reply.Token <= *last {
			p.Fatalf("store %d: token %d after %d", n, reply.Token, *last)
		}
		*last = reply.Token
	}
	return fmt.Sprint(reply.Status, reply.Holder, reply.Err)
}

func renew(p *pair, o *owner, s store.Session, _ int) string {
	r := store.RenewRequest{Key: p.key, Owner: o.Owner, TTL: o.renewal, Description: o.Owner}
	err := s.Renew(p.Context(), []store.RenewRequest{r})[0].Err
	waits := slices.ContainsFunc(p.owners[:], func(o owner) bool { return o.status[0] == store.Waiting })
	if waits && errors.Is(err, store.ErrLost) { // the next one may have the key by now
		err = store.ErrLost
	}
	return fmt.Sprint(err)
}

func release(p *pair, o *owner, s store.Session, n int) string {
	reply := s.Release(p.Context(), []store.ReleaseRequest{{Key: p.key, Owner: o.Owner}})[0]
	o.status[n] = 0
	return fmt.Sprint(reply.WasHeld, reply.Err)
}

func force(p *pair, _ *owner, s store.Session, _ int) string {
	return fmt.Sprint(s.Force(p.Context(), p.key, 0))
}

func inspect(p *pair, _ *owner, s store.Session, _ int) string {
	info, err := s.Inspect(p.Context(), p.key)
	return fmt.Sprint(info.Held, info.Holder, info.Waiters, err)
}
