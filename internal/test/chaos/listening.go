// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/store"
)

// A listener is a store that tells the history what its sessions were told about the keys of readers: when
// a writer was queued, who was let in, and when a client learned that somebody waits. It names no owner,
// because owners are secret.
type listener struct {
	store.Store
	worker *worker
}

// everySession is what sessions of Redis can do.
type everySession interface {
	store.LimitSession
	store.NoteSession
}

var errSession = errors.New("the session has no limits or no notes")

// Open listens to a session of the store.
func (l *listener) Open(id string, notify func(store.Event)) (store.Session, error) {
	s := &listened{worker: l.worker, attempts: make(map[string]*attempt)}
	session, err := l.Store.Open(id, func(e store.Event) {
		s.before(&e)
		notify(e)
		s.after(&e)
	})
	if err != nil {
		return nil, err
	}
	full, ok := session.(everySession)
	if !ok {
		return nil, errSession
	}
	s.everySession = full
	return s, nil
}

// A listened is such a session.
type listened struct {
	everySession
	worker *worker

	mu       sync.Mutex
	attempts map[string]*attempt // by owner
}

// An attempt is what is known of one owner.
type attempt struct {
	op      string
	request store.AcquireRequest // the last one
	first   history.Time         // when the first request was sent
	sent    history.Time         // when the last one was sent that was answered with Waiting; 0: it is not queued
	heard   bool
}

// isHeard reports whether what is told about a key is of use.
func isHeard(key string) bool { return strings.HasPrefix(key, "r") }

// Acquire tells what the replies say.
func (s *listened) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	sent := history.Now()
	for i := range batch {
		s.begin(&batch[i], sent)
	}
	replies := s.everySession.Acquire(ctx, batch)
	for i := range replies {
		s.told(&batch[i], &replies[i], sent)
	}
	return replies
}

// Release tells that owners are gone, and what the replies say of those who queue anew.
func (s *listened) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	sent := history.Now()
	for i := range batch {
		if batch[i].Rest == nil {
			s.gone(batch[i].Owner, sent)
		}
		if again := batch[i].Requeue; again != nil {
			s.begin(again, sent)
		}
	}
	replies := s.everySession.Release(ctx, batch)
	for i := range replies {
		if again := replies[i].Requeue; again != nil {
			s.told(batch[i].Requeue, again, sent)
		}
	}
	return replies
}

// begin notes a request.
func (s *listened) begin(q *store.AcquireRequest, sent history.Time) {
	if !isHeard(q.Key) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[q.Owner]
	if a == nil {
		a = &attempt{op: fmt.Sprintf("%s/owner%d", s.worker.Name, s.worker.requests.Add(1)), first: sent}
		s.attempts[q.Owner] = a
	}
	if a.request.Share.Mode != q.Share.Mode {
		a.sent = 0
	}
	a.request = *q
}

// told tells what a reply says. An owner is in the queue for as long as the store has heard of it within
// its time: from a request that was answered until so long after that was sent.
func (s *listened) told(q *store.AcquireRequest, r *store.AcquireReply, sent history.Time) {
	now := history.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[q.Owner]
	if a == nil || r.Err != nil {
		return
	}
	switch r.Status {
	case store.Waiting:
		if !a.isQueued(now) {
			s.tell(history.Queued, a, history.Record{Begin: a.first, End: now})
		}
		a.sent = sent
	case store.Granted:
		s.admit(a, r.Grant, now)
	default:
		delete(s.attempts, q.Owner)
	}
}

// isQueued reports whether the store can't have dropped the owner, or let it in, until now.
func (a *attempt) isQueued(now history.Time) bool {
	return a.sent != 0 && now <= a.sent+history.Span(a.request.WaiterTTL)
}

// admit tells of a grant. That of a writer that may not have been in the queue all the time says nothing.
func (s *listened) admit(a *attempt, grant store.Grant, now history.Time) {
	queued := a.isQueued(now)
	a.sent = 0
	if a.request.Share.Mode == store.Exclusive && !queued {
		return
	}
	token := grant.Token
	if a.request.Share.Mode == store.Shared {
		token = grant.Fence
	}
	s.tell(history.Admitted, a, history.Record{Begin: a.first, End: now, Token: token})
}

// gone tells that an owner is about to leave.
func (s *listened) gone(owner string, now history.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[owner]; a != nil {
		s.tell(history.Gone, a, history.Record{Begin: now, End: now})
		delete(s.attempts, owner)
	}
}

// before is called before the client knows of an event.
func (s *listened) before(e *store.Event) {
	if e.Kind != store.EventGrant {
		return
	}
	now := history.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[e.Owner]; a != nil {
		s.admit(a, e.Grant, now)
	}
}

// after is called when the client knows of an event.
func (s *listened) after(e *store.Event) {
	if e.Kind != store.EventQueued && e.Kind != store.EventRequested {
		return
	}
	now := history.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.attempts[e.Owner]; a != nil && !a.heard {
		a.heard = true
		s.tell(history.Heard, a, history.Record{Begin: now, End: now})
	}
}

// tell adds a record about an owner. The mutex is locked, so records of one owner are in order.
func (s *listened) tell(kind history.Kind, a *attempt, r history.Record) {
	r.Kind, r.Op, r.Key, r.TTL = kind, a.op, a.request.Key, history.Span(a.request.TTL)
	if a.request.Share.Mode == store.Shared {
		r.Mode = history.Shared
	}
	s.worker.history.Add(r)
}
