// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

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
//
// It returns when ctx ends, although go-redis may still be waiting for a silent server then.
func (d *driver) Receive(ctx context.Context, ch redisstore.Channel, confirmed func(), deliver func(string)) error {
	err, ended := redisconn.Aside(ctx, make(chan struct{}, 1), func() error { return d.receive(ctx, ch, confirmed, deliver) })
	if ended != nil {
		return ended
	}
	return err
}

// receive is Receive for as long as go-redis takes. It is told of nothing when ctx has ended.
func (d *driver) receive(ctx context.Context, ch redisstore.Channel, confirmed func(), deliver func(string)) error {
	subscription, err := d.subscribe(ctx, ch)
	if err != nil {
		return unsharded(err)
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

// greetWithin is how long a silent server is greeted at most. A subscription that takes longer is given
// up in any case.
const greetWithin = 5 * time.Second

// subscribe begins a subscription. Its channel is named in a second step, because the first one would
// drop the error, and then connect once more.
func (d *driver) subscribe(ctx context.Context, ch redisstore.Channel) (s *redis.PubSub, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, forMessages{}, true), greetWithin)
	defer cancel()
	if ch.Sharded {
		node, err := d.nodeOf(ctx, ch.Name)
		if err != nil {
			return nil, err
		}
		s = node.SSubscribe(ctx)
		return s, orClose(s, s.SSubscribe(ctx, ch.Name))
	}
	s = d.client.Subscribe(ctx)
	return s, orClose(s, s.Subscribe(ctx, ch.Name))
}

// orClose closes what has failed.
func orClose(s *redis.PubSub, err error) error {
	if err != nil {
		_ = s.Close()
	}
	return err
}
