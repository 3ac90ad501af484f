// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"slices"

	"github.com/asynclock/asynclock-go/store"
)

var _ store.ObserveSession = (*session)(nil)

// Observe answers at once: nothing can come between.
func (c *session) Observe(key string, on bool) error {
	return c.take(context.Background(), func(t *txn) { t.observe(key, on) })
}

func (c *session) AnnounceEnd(ctx context.Context, key string, token int64) error {
	return c.take(ctx, func(t *txn) { t.announce(key, store.Announcement{Token: token, Ended: true}) })
}

func (t *txn) observe(key string, on bool) {
	t.hearers[key] = slices.DeleteFunc(t.hearers[key], func(s *session) bool { return s == t.from })
	if on {
		t.hearers[key] = append(t.hearers[key], t.from)
		t.notify(t.from, store.Event{Kind: store.EventObserving, Key: key})
	}
	if len(t.hearers[key]) == 0 {
		delete(t.hearers, key)
	}
}

// announce tells all who observe the key.
func (t *txn) announce(key string, a store.Announcement) {
	for _, s := range t.hearers[key] {
		t.notify(s, store.Event{Kind: store.EventAnnounced, Key: key, Announcement: &a})
	}
}

// unobserve forgets what a session that leaves has observed.
func (s *Store) unobserve(c *session) {
	for key, hearers := range s.hearers {
		if hearers = slices.DeleteFunc(hearers, func(h *session) bool { return h == c }); len(hearers) > 0 {
			s.hearers[key] = hearers
		} else {
			delete(s.hearers, key)
		}
	}
}
