// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// Publish sends a message. A sharded one goes to the primary of the channel's slot.
func (d *driver) Publish(ctx context.Context, ch redisstore.Channel, payload string) (receivers int64, err error) {
	type answer struct {
		receivers int64
		err       error
	}
	got, err := redisconn.Aside(ctx, d.places.of(ch.Name), func() (a answer) {
		if ch.Sharded {
			a.receivers, a.err = d.publishSharded(ctx, ch, payload)
		} else {
			a.receivers, a.err = d.client.Publish(ctx, ch.Name, payload).Result()
		}
		return a
	})
	if err != nil {
		return 0, err
	}
	return got.receivers, got.err
}

// publishSharded reads the topology if nobody receives the message: the subscription may be with an
// old primary.
func (d *driver) publishSharded(ctx context.Context, ch redisstore.Channel, payload string) (int64, error) {
	if d.cluster == nil {
		receivers, err := d.single.SPublish(ctx, ch.Name, payload).Result()
		return receivers, unsharded(err)
	}
	c := &command{key: ch.Name, words: []any{"spublish", ch.Name, payload}}
	d.make(ctx, []*command{c})
	if c.err != nil {
		return 0, unsharded(c.err)
	}
	receivers, ok := c.value.(int64)
	if !ok {
		return 0, fmt.Errorf("goredisstore: unexpected reply to SPUBLISH: %T", c.value)
	}
	if receivers == 0 {
		d.reload(ctx)
	}
	return receivers, nil
}

// unsharded marks the error of a server that does not know the commands of sharded pub-sub.
func unsharded(err error) error {
	if text, ok := serverError(err); ok && strings.HasPrefix(text, "unknown command") {
		return fmt.Errorf("%w: %w", redisstore.ErrUnsharded, err)
	}
	return err
}

// Receive subscribes on a connection of its own, and stays until that is lost. go-redis would
// subscribe again by itself. But whoever called Receive does so at a better pace, and finds the new
// primary of a slot.
func (d *driver) Receive(ctx context.Context, ch redisstore.Channel, confirmed func(), deliver func(string)) error {
	subscription, err := d.subscribe(ctx, ch)
	if err != nil {
		return err
	}
	// Closing ends a read that waits, and tells the server that nobody receives any more.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() }) // fails only if it is closed
	defer func() {
		stop()
		_ = subscription.Close()
	}()
	for {
		got, err := subscription.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && ch.Sharded:
			if text, ok := serverError(err); ok && strings.HasPrefix(text, "MOVED ") && d.cluster != nil {
				d.reload(ctx)
			}
			return unsharded(err)
		case err != nil:
			return err
		}
		switch m := got.(type) {
		case *redis.Message:
			deliver(m.Payload)
		case *redis.Subscription:
			switch m.Kind {
			case "subscribe", "ssubscribe":
				confirmed()
			case "unsubscribe", "sunsubscribe":
				return nil // we did not ask for it
			}
		}
	}
}

// subscribe begins a subscription. If it fails, so does the first Receive.
func (d *driver) subscribe(ctx context.Context, ch redisstore.Channel) (*redis.PubSub, error) {
	if !ch.Sharded {
		return d.client.Subscribe(ctx, ch.Name), nil
	}
	node, err := d.nodeOf(ctx, ch.Name)
	if err != nil {
		return nil, err
	}
	return node.SSubscribe(ctx, ch.Name), nil
}
