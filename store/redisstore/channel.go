// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
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

// channel is how drivers know the channel.
func (ch *channel) channel() redisdriver.Channel {
	return redisdriver.Channel{Name: ch.name, Sharded: ch.sharded}
}

// Receive subscribes and stays subscribed. It notes if there is no sharded pub-sub.
func (ch *channel) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	err := ch.store.conn.Receive(ctx, ch.channel(), confirmed, deliver)
	if errors.Is(err, redisdriver.ErrUnsharded) {
		ch.store.unsharded.Store(true)
	}
	return err
}

// Publish sends to the channel as the scripts do, and learns whether the number of receivers
// means anything. It means nothing in a Cluster, behind some proxies, and while the
// subscription is on a replica.
//
// After a failover a sharded subscription is still on the old primary. As a replica it delivers the messages of the new
// one. But handoffs would pass us over, because the new primary knows of no receiver.
func (ch *channel) Publish(ctx context.Context, payload string) error {
	receivers, err := ch.store.conn.Publish(ctx, ch.channel(), payload)
	switch {
	case !ch.sharded:
		ch.counted.Store(receivers > 0 && !ch.store.conn.Cluster())
	case err == nil && receivers == 0:
		return pubsub.ErrElsewhere
	}
	return err
}
