// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/asynclock/asynclock-go/pubsub"
)

// A hub has what the sessions of a store observe. They share subscriptions.
type hub struct {
	mu      sync.Mutex // is held for moments, and while nothing is called
	buckets map[int]*watched
	leaving map[*watched]struct{} // those whose subscription is being ended
	silent  bool                  // the log has said that announcements don't come through
}

// A watched bucket is one of which keys are observed. It has the subscription to the bucket's announcements.
type watched struct {
	keys   map[string][]*session // a list is never changed
	live   bool
	silent bool // an outage is known, and has not ended
	inbox  *pubsub.Inbox
	ended  chan struct{} // closed when the subscription has ended
}

// join adds an observer, and returns the bucket of the key.
func (h *hub) join(s *session, key string) (*watched, error) {
	bucket := bucketOf(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := s.usable(); err != nil { // asked again, as Close takes out whoever has joined
		return nil, err
	}
	b := h.buckets[bucket]
	if b == nil {
		b = h.openLocked(s.store, bucket)
	}
	b.keys[key] = append(slices.Clone(b.keys[key]), s)
	return b, nil
}

// isLive reports whether announcements come through.
func (h *hub) isLive(b *watched) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return b.live
}

// openLocked subscribes.
func (h *hub) openLocked(st *Store, bucket int) *watched {
	if h.buckets == nil {
		h.buckets, h.leaving = make(map[int]*watched), make(map[*watched]struct{})
	}
	b := &watched{keys: make(map[string][]*session), ended: make(chan struct{})}
	h.buckets[bucket] = b
	b.inbox = pubsub.Open(observers(st, bucket), pubsub.Handler{
		Message: func(payload string) { st.announced(b, payload) },
		Up:      func() { st.hears(b, nil) },
		Down:    func(err error) { st.hears(b, err) },
	})
	return b
}

// leave takes a session out of the keys that match. Subscriptions that nobody needs any more end in the background,
// because their handler may be waiting for the caller. It reports whether an outage was that of their buckets alone.
func (h *hub) leave(s *session, matches func(key string) bool) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for bucket, b := range h.buckets {
		for key, sessions := range b.keys {
			if !matches(key) {
				continue
			}
			b.keys[key] = slices.DeleteFunc(slices.Clone(sessions), func(other *session) bool { return other == s })
			if len(b.keys[key]) == 0 {
				delete(b.keys, key)
			}
		}
		if len(b.keys) == 0 {
			delete(h.buckets, bucket)
			h.leaving[b] = struct{}{}
			go h.end(b) // ends when the subscription has ended
		}
	}
	return h.turnedLocked()
}

func (h *hub) end(b *watched) {
	_ = b.inbox.Close(context.Background())
	close(b.ended)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leaving, b)
}

// awaitEnds waits until the subscriptions that are being ended have ended.
func (h *hub) awaitEnds(ctx context.Context) error {
	h.mu.Lock()
	leaving := slices.Collect(maps.Keys(h.leaving))
	h.mu.Unlock()
	for _, b := range leaving {
		select {
		case <-b.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// observersOf returns who observes the key.
func (h *hub) observersOf(b *watched, key string) []*session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return b.keys[key]
}

// turn notes whether announcements come through. It returns whom to tell, and whether the log is to be told, too.
func (h *hub) turn(b *watched, live, silent bool) (tell map[string][]*session, changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b.live, b.silent = live, silent
	return maps.Clone(b.keys), h.turnedLocked()
}

// turnedLocked reports whether an outage has begun or ended: in the first of the buckets, or in the last. If all of them
// are left, nothing is known.
func (h *hub) turnedLocked() (changed bool) {
	silent, live := false, false
	for _, b := range h.buckets {
		silent, live = silent || b.silent, live || b.live
	}
	if silent == h.silent || !silent && !live {
		return false
	}
	h.silent = silent
	return true
}
