// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A channel is a pubsub.Source: one Redis channel, classic or sharded.
type channel struct {
	store   *Store
	name    string
	sharded bool
	// The name, each time behind the letter that tells scripts how to use it.
	byShard, byCount, blindly string

	counted atomic.Bool // the server that publishes knows who receives
}

func newChannel(st *Store, name string, sharded bool) *channel {
	return &channel{store: st, name: name, sharded: sharded, byShard: "s" + name, byCount: "p" + name, blindly: "u" + name}
}

// address is how scripts are to use the channel.
func (ch *channel) address() string {
	switch {
	case ch.sharded:
		return ch.byShard
	case ch.counted.Load():
		return ch.byCount
	}
	return ch.blindly
}

// Receive subscribes and stays subscribed. rueidis subscribes again by itself
// after a lost connection, and returns nil when the server ends the
// subscription, as it does when a slot moves to another node.
func (ch *channel) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Channel == ch.name && (s.Kind == "subscribe" || s.Kind == "ssubscribe") {
			confirmed()
		}
	})
	ctx = rueidis.WithOnReceiveReturnHook(ctx, ch.unsubscribe)
	b := ch.store.conn.Inboxes.B()
	subscribe := b.Subscribe().Channel(ch.name).Build()
	if ch.sharded {
		subscribe = b.Ssubscribe().Channel(ch.name).Build()
	}
	err := ch.store.conn.Inboxes.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { deliver(m.Message) })
	if ch.sharded && redisconn.IsUnknownCommand(err) {
		ch.store.unsharded.Store(true)
	}
	return err
}

// unsubscribe is called on the connection that Receive used. Ending Receive's
// context leaves the subscription there, and with it a receiver that handoffs
// would count on.
func (ch *channel) unsubscribe(err error, client rueidis.CommandClient) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), redisconn.UnsubscribeWithin)
	defer cancel()
	command := client.B().Unsubscribe().Channel(ch.name).Build()
	if ch.sharded {
		command = client.B().Sunsubscribe().Channel(ch.name).Build()
	}
	client.Do(ctx, command) // should it fail, so does the connection
	return err
}

// Publish sends to the channel as the scripts do, and learns whether the number of receivers
// means anything. It means nothing in a Cluster, behind some proxies, and while the
// subscription is on a replica.
func (ch *channel) Publish(ctx context.Context, payload string) error {
	b := ch.store.conn.Commands.B()
	if ch.sharded {
		receivers, err := ch.store.conn.Do(ctx, b.Spublish().Channel(ch.name).Message(payload).Build()).AsInt64()
		if err == nil && receivers == 0 {
			// Replicas redirect EXISTS, but not subscriptions, so the client may know only
			// the old primary.
			ch.store.conn.Inboxes.Do(ctx, ch.store.conn.Inboxes.B().Exists().Key(ch.name).Build())
			return errElsewhere
		}
		return err
	}
	receivers, err := ch.store.conn.Do(ctx, b.Publish().Channel(ch.name).Message(payload).Build()).AsInt64()
	ch.counted.Store(receivers > 0 && !ch.store.conn.Cluster())
	return err
}

// errElsewhere: after a failover the subscription is still on the old primary. As a replica
// it delivers the messages of the new primary. But handoffs would pass us over, because the
// new primary knows of no receiver.
var errElsewhere = errors.New("redisstore: the primary of the channel's slot does not know the subscription")
