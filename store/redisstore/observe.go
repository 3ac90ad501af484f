// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
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
	if answer, ok := result.Integer(); ok && answer == 0 {
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

// Observe opens a subscription for the first key of a bucket that is observed by way of this store, and ends it with the
// last one.
func (s *session) Observe(key string, on bool) error {
	if err := cmp.Or(s.usable(), redisconn.CheckKey(key)); err != nil {
		return err
	}
	if !on {
		s.observesNoMore(func(observed string) bool { return observed == key })
		return nil
	}
	b, err := s.store.hub.join(s, key)
	if err != nil {
		return err
	}
	// The session may be told of a change at the same time. The last that it is told is true.
	for told := false; s.store.hub.isLive(b) != told; {
		told = !told
		s.events(store.Event{Kind: kindOf(told), Key: key})
	}
	return nil
}

// kindOf is the event that says whether announcements come through.
func kindOf(live bool) store.EventKind {
	if live {
		return store.EventObserving
	}
	return store.EventUnobserved
}

// announced passes on a message to those who observe its key.
func (st *Store) announced(b *watched, payload string) {
	st.activity.note()
	key, a, ok := parseAnnouncement(payload)
	if !ok {
		st.log.Add(slog.LevelDebug, "redisstore: ignored an announcement that no script sends", slog.Int("bytes", len(payload)))
		return
	}
	for _, s := range st.hub.observersOf(b, key) {
		s.events(store.Event{Kind: store.EventAnnounced, Key: key, Announcement: &a})
	}
}

// hears tells observers of a bucket whether announcements come through. An error says why not.
func (st *Store) hears(b *watched, err error) {
	silent := err != nil && !errors.Is(err, redisdriver.ErrUnsharded) // otherwise the next subscription will be to a classic channel
	tell, changed := st.hub.turn(b, err == nil, silent)
	if changed {
		st.logHearing(err)
	}
	for key, sessions := range tell {
		for _, s := range sessions {
			s.events(store.Event{Kind: kindOf(err == nil), Key: key})
		}
	}
}

// logHearing logs the beginning of an outage, with its reason, or its end.
func (st *Store) logHearing(reason error) {
	if reason != nil {
		st.log.Add(slog.LevelWarn, "redisstore: announcements don't come through; observers look again and again instead", slog.Any("error", reason))
		return
	}
	st.log.Add(slog.LevelInfo, "redisstore: announcements come through again")
}

// observesNoMore takes a session out of the keys that match.
func (s *session) observesNoMore(matches func(key string) bool) {
	if s.store.hub.leave(s, matches) {
		s.store.logHearing(nil)
	}
}
