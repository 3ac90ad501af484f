// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// noAddress is the channel of a client that can't be notified.
const noAddress = "-"

// settleWithin is how long the first requests of a session wait for its inbox. Otherwise they
// would name no channel, and their owners would have to poll, although the inbox would work a
// moment later.
const settleWithin = 250 * time.Millisecond

// An inbox is one channel and its subscription.
type inbox struct {
	*pubsub.Inbox
	channel *channel
}

// address returns how scripts are to name the inbox: its channel behind a letter
// that fragments.go explains, or noAddress while it isn't known to work.
func (in *inbox) address(ctx context.Context) string {
	if !in.Live() && !in.WaitLive(ctx, settleWithin) {
		return noAddress
	}
	return in.channel.address()
}

// address is how the inbox for key is to be named in a request.
func (s *session) address(ctx context.Context, key string) string {
	for {
		in := s.inbox(bucketOf(key))
		if in == nil {
			return noAddress
		}
		address := in.address(ctx)
		if address != noAddress || !in.channel.sharded || !s.store.unsharded.Load() {
			return address
		}
		// This inbox has just found that the server has no sharded pub-sub. The
		// next one is the inbox for all keys.
	}
}

// inboxName is like address, for notifications to a holder. They grant nothing, so the inbox
// need not be known to work. For a while after a restart it is not. Usually it works soon.
func (s *session) inboxName(key string) string {
	if in := s.inbox(bucketOf(key)); in != nil {
		return in.channel.address()
	}
	return noAddress
}

// inbox returns the inbox for the keys of a bucket, and opens it if need be. It
// returns nil after Close.
//
// In a Cluster a classic message goes to every node, and the sending node can't tell whether
// anyone received it. A sharded message stays with the bucket's node, and that node can tell.
// So there is one inbox per bucket in use where the server has sharded pub-sub, and elsewhere
// one for all.
func (s *session) inbox(bucket int) *inbox {
	place, sharded := s.inboxOf(bucket)
	if in := place.Load(); in != nil {
		return in
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in := place.Load()
	if in == nil && s.usable() == nil {
		in = s.openInbox(bucket, sharded)
		place.Store(in)
	}
	return in
}

// inboxOf returns where the inbox for the keys of a bucket is, and whether it is for these only.
func (s *session) inboxOf(bucket int) (place *atomic.Pointer[inbox], sharded bool) {
	if s.store.conn.Cluster() && !s.store.unsharded.Load() {
		return &s.sharded[bucket], true
	}
	return &s.classic, false
}

// open returns all open inboxes.
func (s *session) open() (inboxes []*inbox) {
	if in := s.classic.Load(); in != nil {
		inboxes = append(inboxes, in)
	}
	for i := range s.sharded {
		if in := s.sharded[i].Load(); in != nil {
			inboxes = append(inboxes, in)
		}
	}
	return inboxes
}

func (s *session) openInbox(bucket int, sharded bool) *inbox {
	name := []byte(s.store.settings.prefix + ":")
	if sharded {
		name = append(appendTag(name, bucket), ':')
	}
	ch := newChannel(s.store, string(name)+"c:"+s.id, sharded)
	about := store.Event{OneLane: sharded, Lane: bucket} // a bucket's keys are a lane
	return &inbox{
		channel: ch,
		Inbox: pubsub.Open(ch, pubsub.Handler{
			Message: s.message,
			Up:      func() { s.up(ch, about) },
			Down:    func(err error) { s.down(ch, about, err) },
		}),
	}
}

// message passes on what a script sent.
func (s *session) message(payload string) {
	s.store.activity.note()
	event, ok := parseMessage(payload)
	if !ok {
		s.store.log.Add(slog.LevelDebug, "redisstore: ignored a message that no script sends", slog.String("client", s.id), slog.Int("bytes", len(payload)))
		return
	}
	s.events(event)
}

// up: waiters poll once, and these requests say that they can be notified from now on.
func (s *session) up(ch *channel, about store.Event) {
	s.audible(ch)
	s.store.log.Add(slog.LevelDebug, "redisstore: messages come through", slog.String("client", s.id))
	about.Kind = store.EventResync
	s.events(about)
	s.store.warnIfEvicted()
}

func (s *session) down(ch *channel, about store.Event, err error) {
	about.Kind = store.EventDisconnected
	if s.store.unsharded.Load() && errors.Is(err, redisdriver.ErrUnsharded) {
		// The inbox for all keys takes over. The session's Close waits for these inboxes,
		// too.
		for i := range s.sharded {
			if in := s.sharded[i].Load(); in != nil {
				go in.Close(context.Background()) //nolint:errcheck // not here: it waits for this function
			}
		}
		s.events(about)
		return
	}
	if errors.Is(err, pubsub.ErrElsewhere) { // so are those of other buckets, probably
		for _, in := range s.open() {
			in.Prove()
		}
	}
	s.silent(ch, err)
	s.store.log.Add(slog.LevelDebug, "redisstore: messages don't come through", slog.String("client", s.id), slog.Any("error", err))
	s.events(about)
}
