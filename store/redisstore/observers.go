// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/pubsub"
)

// An observersChannel is a pubsub.Source: the channel of all observers of a bucket's keys. It is a channel per bucket,
// because a script may only send to its own slot, and so that announcements reach few who do not want them.
//
// Many clients share the channel. Were each to prove it by probes of its own, each would get all of them. So whoever has
// heard another's message since the last proof takes that for a proof.
type observersChannel struct {
	store            *Store
	classic, sharded *channel

	heard   atomic.Bool                  // another's message has come since the last proof
	deliver atomic.Pointer[func(string)] // of the present subscription
	probe   atomic.Pointer[string]       // the last one sent
}

// observers returns the channel of a bucket's observers.
func observers(st *Store, bucket int) *observersChannel {
	name := string(appendTag([]byte(st.settings.prefix+":"), bucket)) + ":o"
	return &observersChannel{store: st, classic: newChannel(st, name, false), sharded: newChannel(st, name, true)}
}

// current is the channel as the server has it. A Cluster has sharded ones, unless it has shown that it has none.
func (o *observersChannel) current() *channel {
	if o.store.conn.Cluster() && !o.store.unsharded.Load() {
		return o.sharded
	}
	return o.classic
}

// Receive subscribes and stays subscribed.
func (o *observersChannel) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	o.deliver.Store(&deliver)
	return o.current().Receive(ctx, func() {
		o.heard.Store(false) // what came before proves nothing about this connection
		confirmed()
	}, func(payload string) {
		if sent := o.probe.Load(); sent == nil || payload != *sent {
			o.heard.Store(true)
		}
		deliver(payload)
	})
}

// probeWithin spreads the probes of clients that have lost their subscription at the same moment. The first probe proves
// the channel to all.
const probeWithin = 200 * time.Millisecond

// Publish sends a probe, unless another's message has proved the channel.
func (o *observersChannel) Publish(ctx context.Context, probe string) error {
	if !backoff.Sleep(ctx, rand.N(probeWithin)) {
		return ctx.Err()
	}
	if deliver := o.deliver.Load(); o.heard.Swap(false) && deliver != nil && strings.HasPrefix(probe, pubsub.ProbePrefix) {
		(*deliver)(probe)
		return nil
	}
	o.probe.Store(&probe)
	if err := o.current().Publish(ctx, probe); !errors.Is(err, pubsub.ErrElsewhere) {
		return err
	}
	return nil // announcements pass nobody over: a replica delivers them
}
