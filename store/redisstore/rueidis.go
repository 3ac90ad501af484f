// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A rueidisDriver is the driver of [Open] and [New]. With [WithLazyDial] it comes later: see lazyDriver.
type rueidisDriver struct{ conn *redisconn.Conn }

var _ redisdriver.Driver = rueidisDriver{}

func (d rueidisDriver) Cluster() bool           { return d.conn.Cluster() }
func (d rueidisDriver) Sentinel() bool          { return d.conn.Sentinel() }
func (d rueidisDriver) Failure(err error) error { return d.conn.Failure(err) }
func (d rueidisDriver) Close()                  { d.conn.Close() }

// Eval runs a script without the slices of EvalAll.
func (d rueidisDriver) Eval(ctx context.Context, run redisdriver.Run) redisdriver.Result {
	if run.Ahead {
		return redisdriver.RueidisResult(redisconn.RunBehind(ctx, d.conn, primer(d.conn.Commands, run.Keys[0]), run.Script, run.Keys, run.Args))
	}
	return redisdriver.RueidisResult(redisconn.RunOnce(ctx, d.conn, run.Script, run.Keys, run.Args))
}

// AskNode asks a server of the deployment, which may be a replica.
func (d rueidisDriver) AskNode(ctx context.Context, address string) (redisconn.Node, error) {
	return d.conn.AskNode(ctx, address)
}

// primer returns the command that goes ahead of a script. rueidis does not take an arbitrary command
// for one that only reads. It might repeat a command that only reads, and the script's answer would
// wait for that.
func primer(client rueidis.CoreClient, key string) rueidis.Completed {
	return client.B().Arbitrary("EXISTS").Keys(key).Build()
}

func (d rueidisDriver) EvalAll(ctx context.Context, runs []redisdriver.Run) []redisdriver.Result {
	replies := make([]redisdriver.Result, len(runs))
	redisconn.RunScripts(ctx, d.conn, len(runs), func(i int) (sc *redisconn.Script, keys, args []string) {
		return runs[i].Script, runs[i].Keys, runs[i].Args
	}, func(i int, result rueidis.RedisResult) { replies[i] = redisdriver.RueidisResult(result) })
	return replies
}

func (d rueidisDriver) GetAll(ctx context.Context, keys []string) []redisdriver.Result {
	replies := make([]redisdriver.Result, len(keys))
	redisconn.GetAll(ctx, d.conn, keys, func(i int, result rueidis.RedisResult) { replies[i] = redisdriver.RueidisResult(result) })
	return replies
}

func (d rueidisDriver) Scan(ctx context.Context, pattern string) iter.Seq2[[]string, error] {
	return redisconn.Pages(ctx, d.conn, pattern)
}

// Receive subscribes and stays subscribed, as [redisconn.Conn.Receive] describes.
func (d rueidisDriver) Receive(ctx context.Context, ch redisdriver.Channel, confirmed func(), deliver func(string)) error {
	b := d.conn.Inboxes.B()
	subscribe := b.Subscribe().Channel(ch.Name).Build()
	if ch.Sharded {
		subscribe = b.Ssubscribe().Channel(ch.Name).Build()
	}
	err := d.conn.Receive(ctx, subscribe, func(s rueidis.PubSubSubscription) {
		if s.Channel == ch.Name && (s.Kind == "subscribe" || s.Kind == "ssubscribe") {
			confirmed()
		}
	}, func(m rueidis.PubSubMessage) { deliver(m.Message) })
	return unsharded(ch, err)
}

func (d rueidisDriver) Publish(ctx context.Context, ch redisdriver.Channel, payload string) (int64, error) {
	b := d.conn.Commands.B()
	if !ch.Sharded {
		return d.conn.Do(ctx, b.Publish().Channel(ch.Name).Message(payload).Build()).AsInt64()
	}
	receivers, err := d.conn.Do(ctx, b.Spublish().Channel(ch.Name).Message(payload).Build()).AsInt64()
	if err == nil && receivers == 0 {
		// Replicas redirect EXISTS, but not subscriptions, so the client may know only
		// the old primary.
		d.conn.FindPrimary(ctx, ch.Name)
	}
	return receivers, unsharded(ch, err)
}

// unsharded marks the error of a server that does not know the commands of sharded pub-sub.
func unsharded(ch redisdriver.Channel, err error) error {
	if ch.Sharded && redisconn.IsUnknownCommand(err) {
		return fmt.Errorf("%w: %w", redisdriver.ErrUnsharded, err)
	}
	return err
}
