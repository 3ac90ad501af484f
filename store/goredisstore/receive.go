// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// Publish sends a message. A sharded one goes to the primary of the channel's slot.
func (d *driver) Publish(ctx context.Context, ch redisdriver.Channel, payload string) (receivers int64, err error) {
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
func (d *driver) publishSharded(ctx context.Context, ch redisdriver.Channel, payload string) (int64, error) {
	if d.cluster == nil {
		receivers, err := d.single.SPublish(ctx, ch.Name, payload).Result()
		return receivers, unsharded(err)
	}
	c := &command{key: ch.Name}
	c.words = []any{"spublish", word{ch.Name, c}, payload}
	d.make(ctx, []*command{c})
	if c.err != nil {
		return 0, unsharded(c.err)
	}
	receivers, ok := c.value.(int64)
	if !ok {
		return 0, fmt.Errorf("goredisstore: unexpected reply to SPUBLISH: %T", c.value)
	}
	if receivers == 0 && d.unreceived.admits(time.Now()) {
		d.reload(ctx)
	}
	return receivers, nil
}

// unsharded marks the error of a server that does not know the commands of sharded pub-sub.
func unsharded(err error) error {
	if text, ok := serverError(err); ok && strings.HasPrefix(text, "unknown command") {
		return fmt.Errorf("%w: %w", redisdriver.ErrUnsharded, err)
	}
	return err
}

// Receive subscribes on the connection for messages that the server's channels share: see feed.
func (d *driver) Receive(ctx context.Context, ch redisdriver.Channel, confirmed func(), deliver func(string)) error {
	type answer struct {
		node *redis.Client
		err  error
	}
	found, err := redisconn.Aside(ctx, d.places.of(ch.Name), func() (a answer) {
		a.node, a.err = d.nodeOf(ctx, ch.Name)
		return a
	})
	if err == nil {
		err = found.err
	}
	if err != nil {
		return err
	}
	err = d.feeds.listen(ctx, found.node, &listener{channel: ch, confirmed: confirmed, deliver: deliver})
	if text, refused := serverError(err); refused && strings.HasPrefix(text, "MOVED ") && d.cluster != nil {
		_, _ = redisconn.Aside(ctx, d.places.of(ch.Name), func() error { // the next one fails if it can't
			d.reload(ctx)
			return nil
		})
	}
	return unsharded(err)
}
