// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A scripted node answers as its test says, and notes each request.
type scripted struct {
	store.Session // nil: nothing else is asked

	notify func(store.Event)

	mu       sync.Mutex
	slow     time.Duration // how long it takes for requests that come from now on
	acquire  store.AcquireReply
	renew    store.RenewReply
	release  store.ReleaseReply
	requests []any
}

func (n *scripted) Features() store.Features {
	return store.Features{Tokens: true, FIFO: true, Retention: true}
}

func (n *scripted) Open(_ string, notify func(store.Event)) (store.Session, error) {
	n.notify = notify
	return n, nil
}

// serve answers one request. Its answer is that of the time when it came.
func serve[Q, R any](n *scripted, request Q, answer *R) []R {
	n.mu.Lock()
	n.requests = append(n.requests, request)
	slow, reply := n.slow, *answer
	n.mu.Unlock()
	time.Sleep(slow)
	return []R{reply}
}

func (n *scripted) Acquire(_ context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return serve(n, batch[0], &n.acquire)
}

func (n *scripted) Renew(_ context.Context, batch []store.RenewRequest) []store.RenewReply {
	if batch[0].Token == 0 { // it only asks why a lease was lost
		return []store.RenewReply{{Err: store.ErrExpired}}
	}
	return serve(n, batch[0], &n.renew)
}

func (n *scripted) Release(_ context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	return serve(n, batch[0], &n.release)
}

// Inspect shows the latest request to acquire as the holder.
func (n *scripted) Inspect(context.Context, string) (info store.Info, err error) {
	if asked := got[store.AcquireRequest](n); len(asked) > 0 {
		n.mu.Lock()
		defer n.mu.Unlock()
		info = store.Info{Held: true, Holder: asked[len(asked)-1].Description, Token: n.acquire.Token}
	}
	return info, nil
}

func (n *scripted) Close(context.Context) error { return nil }

// got returns the requests of one kind so far.
func got[Q any](n *scripted) (list []Q) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.requests {
		if q, ok := r.(Q); ok {
			list = append(list, q)
		}
	}
	return list
}

// script changes the node from now on.
func (n *scripted) script(change func(*scripted)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// released reports whether the node was asked to release the vote of its first request.
func (n *scripted) released() bool {
	first := got[store.AcquireRequest](n)[0].Owner
	return slices.ContainsFunc(got[store.ReleaseRequest](n), func(r store.ReleaseRequest) bool { return r.Owner == first })
}

// A scene is a client of three scripted nodes, which grant everything and have the same token.
type scene struct {
	*testing.T

	door, second, third *scripted
	session             store.Session

	mu     sync.Mutex
	events []store.Event
}

const sceneTTL = 10 * time.Second

// act plays a scene in a bubble.
func act(t *testing.T, play func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var nodes []*scripted
		var stores []store.Store
		for range 3 {
			n := &scripted{release: store.ReleaseReply{WasHeld: true}, acquire: granted(7, 0)}
			nodes, stores = append(nodes, n), append(stores, n)
		}
		s := &scene{T: t}
		session, err := over(t, stores...).Open("client", func(e store.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		})
		if err != nil {
			t.Fatal(err)
		}
		door := session.Lane("key")
		s.session, s.door, s.second, s.third = session, nodes[door], nodes[(door+1)%3], nodes[(door+2)%3]
		play(s)
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func granted(token int64, ttl time.Duration) store.AcquireReply {
	return store.AcquireReply{Status: store.Granted, Grant: store.Grant{Token: token}, TTL: ttl}
}

func (s *scene) nodes() []*scripted { return []*scripted{s.door, s.second, s.third} }

// acquire acquires the key, for as long as each node says.
func (s *scene) acquire(wait bool, ttls ...time.Duration) store.AcquireReply {
	for i, ttl := range ttls {
		s.nodes()[i].script(func(n *scripted) { n.acquire.TTL = ttl })
	}
	reply := s.session.Acquire(s.Context(), []store.AcquireRequest{{
		Key: "key", Owner: "owner", TTL: sceneTTL, GrantTTL: sceneTTL, WaiterTTL: sceneTTL, Wait: wait,
	}})[0]
	synctest.Wait()
	return reply
}

func (s *scene) renew() store.RenewReply {
	reply := s.session.Renew(s.Context(), []store.RenewRequest{{Key: "key", Owner: "owner", TTL: sceneTTL}})[0]
	synctest.Wait()
	return reply
}

func (s *scene) release() store.ReleaseReply {
	reply := s.session.Release(s.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Clean: true}})[0]
	synctest.Wait()
	return reply
}

func want[V comparable](s *scene, what string, got, want V) {
	s.Helper()
	if got != want {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (s *scene) wantErr(what string, got, want error) {
	s.Helper()
	if !errors.Is(got, want) {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// tokens lets the nodes give tokens.
func (s *scene) tokens(follow bool, tokens ...int64) {
	for i, token := range tokens {
		s.nodes()[i].script(func(n *scripted) { n.acquire.Grant = store.Grant{Token: token, TokensFollowClock: follow} })
	}
}
