// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
)

var _ store.ObserveSession = (*session)(nil)

// AnnounceEnd sends one command.
func (s *session) AnnounceEnd(ctx context.Context, key string, token int64) error {
	if err := cmp.Or(s.usable(), redisconn.CheckKey(key)); err != nil {
		return err
	}
	c := call{script: announceScript}
	c.lockKeys(s.store.settings.prefix, key, announceKinds)
	c.announces(s.store, key)
	c.number(token)
	result := s.store.runOne(ctx, &c)
	if answer, ok := result.integer(); ok && answer == 0 {
		return nil
	}
	list := newReply(result)
	list.end()
	return list.failed(s.store)
}

// announceKinds are the Redis keys of a lock that announce.lua needs. A Cluster finds the slot by it.
const announceKinds = "l"

// announces adds the arguments of a script that tells observers of the key: their channel and the key.
func (c *call) announces(st *Store, key string) {
	bucket := bucketOf(key)
	c.text(observers(st, bucket).current().address())
	c.text(string(appendEncoded(nil, key)))
}

// A watched bucket is one of which a session observes keys. It has the subscription to the bucket's announcements.
type watched struct {
	keys  map[string]struct{}
	live  bool
	inbox *pubsub.Inbox
}

// watching is what a session observes.
type watching struct {
	mu      sync.Mutex
	buckets map[int]*watched
	leaving map[*pubsub.Inbox]struct{} // the subscriptions that are being ended
}

// Observe opens a subscription for the first key of a bucket, and ends it with the last one.
func (s *session) Observe(key string, on bool) error {
	if err := cmp.Or(s.usable(), redisconn.CheckKey(key)); err != nil {
		return err
	}
	if !on {
		s.watching.forget(key)
		return nil
	}
	live, err := s.watch(key)
	if live {
		s.events(store.Event{Kind: store.EventObserving, Key: key})
	}
	return err
}

// watch reports whether announcements of the key come through already.
func (s *session) watch(key string) (live bool, err error) {
	bucket := bucketOf(key)
	s.watching.mu.Lock()
	defer s.watching.mu.Unlock()
	if err := s.usable(); err != nil { // asked again, as Close looks what is open
		return false, err
	}
	b := s.watching.buckets[bucket]
	if b == nil {
		b = &watched{keys: make(map[string]struct{})}
		if s.watching.buckets == nil {
			s.watching.buckets = make(map[int]*watched)
		}
		s.watching.buckets[bucket] = b
		b.inbox = pubsub.Open(observers(s.store, bucket), pubsub.Handler{
			Message: func(payload string) { s.heard(b, payload) },
			Up:      func() { s.hears(b, nil) },
			Down:    func(err error) { s.hears(b, err) },
		})
	}
	b.keys[key] = struct{}{}
	return b.live, nil
}

// heard passes on an announcement, if somebody here observes its key.
func (s *session) heard(b *watched, payload string) {
	s.store.activity.note()
	key, a, ok := parseAnnouncement(payload)
	if !ok {
		s.store.log.Add(slog.LevelDebug, "redisstore: ignored an announcement that no script sends",
			slog.String("client", s.id), slog.Int("bytes", len(payload)))
		return
	}
	s.watching.mu.Lock()
	_, observed := b.keys[key]
	s.watching.mu.Unlock()
	if observed {
		s.events(store.Event{Kind: store.EventAnnounced, Key: key, Announcement: &a})
	}
}

// hears tells observers of a bucket whether announcements come through. An error says why not.
func (s *session) hears(b *watched, err error) {
	kind := store.EventObserving
	if err != nil {
		kind = store.EventUnobserved
	}
	if err != nil && !errors.Is(err, ErrUnsharded) { // the next subscription will be to a classic channel
		s.store.deaf.Do(func() {
			s.store.log.Add(slog.LevelWarn, "redisstore: announcements don't come through; observers look again and again instead", slog.Any("error", err))
		})
	}
	s.watching.mu.Lock()
	b.live = err == nil
	keys := make([]string, 0, len(b.keys))
	for key := range b.keys {
		keys = append(keys, key)
	}
	s.watching.mu.Unlock()
	for _, key := range keys {
		s.events(store.Event{Kind: kind, Key: key})
	}
}

// forget ends the observing of a key. The subscription of the last key of a bucket ends in the background, because its
// handler may be waiting for the caller.
func (w *watching) forget(key string) {
	bucket := bucketOf(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.buckets[bucket]
	if b == nil {
		return
	}
	delete(b.keys, key)
	if len(b.keys) > 0 {
		return
	}
	delete(w.buckets, bucket)
	if w.leaving == nil {
		w.leaving = make(map[*pubsub.Inbox]struct{})
	}
	w.leaving[b.inbox] = struct{}{}
	go func() { // ends when the subscription has ended
		_ = b.inbox.Close(context.Background())
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.leaving, b.inbox)
	}()
}

// inboxes returns all subscriptions that have not ended.
func (w *watching) inboxes() (all []*pubsub.Inbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for in := range w.leaving {
		all = append(all, in)
	}
	for _, b := range w.buckets {
		all = append(all, b.inbox)
	}
	return all
}
