// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"log/slog"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
)

// openInbox subscribes to the registry's channels, those of the old releases and
// of the new.
func (s *session) openInbox() {
	ch := &channels{store: s.store, patterns: s.store.names.patterns(), probes: s.store.names.channel(sidePrefix + ":" + s.id)}
	s.inbox = pubsub.Open(ch, pubsub.Handler{Message: s.message, Up: s.up, Down: s.down})
}

// message wakes the waiters for a free key, or tells a holder that its key was taken by force.
func (s *session) message(payload string) {
	if owner, ok := parseForced(payload); ok {
		s.events(store.Event{Kind: store.EventForced, Owner: owner})
		return
	}
	for _, owner := range s.waiting.of(payload) {
		s.events(store.Event{Kind: store.EventWake, Owner: owner})
	}
}

// up: waiters poll once, because they may have missed something.
func (s *session) up() {
	s.store.log.Add(slog.LevelInfo, "springredis: messages come through", slog.String("client", s.id))
	s.events(store.Event{Kind: store.EventResync})
}

// down: waiters poll once, and the answer tells them to go on polling.
func (s *session) down(err error) {
	s.store.log.Add(slog.LevelWarn, "springredis: messages don't come through; waiters ask again and again instead",
		slog.String("client", s.id), slog.Any("error", err))
	s.events(store.Event{Kind: store.EventResync})
	s.events(store.Event{Kind: store.EventDisconnected})
}

// channels is a pubsub.Source: all channels of a registry, by two patterns on one
// connection.
type channels struct {
	store    *Store
	patterns []string
	// probes is a channel that the second pattern matches, like the channels of the locks.
	// Java registries receive probes, too, and ignore them: a probe names no key that they
	// wait for.
	probes string
}

// Receive subscribes and stays subscribed, as [redisconn.Conn.Receive] describes. The server confirms the patterns in
// their order.
func (ch *channels) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	subscribe := ch.store.conn.Inboxes.B().Psubscribe().Pattern(ch.patterns...).Build()
	return ch.store.conn.Receive(ctx, subscribe, func(s rueidis.PubSubSubscription) {
		if s.Kind == "psubscribe" && s.Channel == ch.patterns[len(ch.patterns)-1] {
			confirmed()
		}
	}, func(m rueidis.PubSubMessage) { deliver(m.Message) })
}

// Publish sends a probe as the scripts send what is free.
func (ch *channels) Publish(ctx context.Context, payload string) error {
	return ch.store.conn.Do(ctx, ch.store.conn.Commands.B().Publish().Channel(ch.probes).Message(payload).Build()).Error()
}
