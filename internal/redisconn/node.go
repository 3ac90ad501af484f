// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// A Node is what a server says about itself.
type Node struct {
	Clock  Reading
	Server string // INFO server
	Copies string // INFO replication
}

// A Reading is a server's clock, read between two moments of this process.
type Reading struct{ Clock, Before, After time.Time }

// A clock is read until that takes no longer than this, or as often. The reading that took the least time counts.
const (
	promptly = time.Millisecond
	readings = 100
)

// Read reads a clock by a function.
func Read(read func() (time.Time, error)) (best Reading, err error) {
	for range readings {
		r := Reading{Before: time.Now()}
		r.Clock, err = read()
		r.After = time.Now()
		if err != nil {
			return r, err
		}
		if best.After.IsZero() || r.After.Sub(r.Before) < best.After.Sub(best.Before) {
			best = r
		}
		if best.After.Sub(best.Before) <= promptly {
			break
		}
	}
	return best, nil
}

// Ahead returns by how much, at least and at most, the clock is ahead of another one. Clocks that run at rates that differ are
// as far apart as when each was read.
func (r Reading) Ahead(of Reading) (least, most time.Duration) {
	apart := r.Clock.Sub(of.Clock)
	return apart + of.Before.Sub(r.After), apart + of.After.Sub(r.Before)
}

// errForeignNode: the application's client has no connection to a server, and its options are not known.
var errForeignNode = errors.New("the application's client does not know this server")

// AskNode asks one server, which may be a replica, on a connection of its own where the Conn is one of Open. It returns
// soon after ctx ends.
func (c *Conn) AskNode(ctx context.Context, address string) (node Node, err error) {
	client := c.Commands.Nodes()[address]
	if c.option != nil {
		own, err := rueidis.NewClient(toNode(ctx, *c.option, address))
		if err != nil {
			return node, c.unopened(err)
		}
		defer own.Close()
		client = own
	} else if client == nil {
		return node, NotSent(errForeignNode)
	}
	b := client.B()
	for section, text := range map[string]*string{"server": &node.Server, "replication": &node.Copies} {
		if *text, err = client.Do(ctx, b.Info().Section(section).Build()).ToString(); err != nil {
			return node, c.Failure(err)
		}
	}
	node.Clock, err = Read(func() (time.Time, error) { return clockOf(client.Do(ctx, b.Time().Build())) })
	if err != nil {
		return node, c.Failure(err)
	}
	return node, nil
}

// toNode returns the options of a client of one server, whose connections close when ctx ends: rueidis itself would wait
// on for a server that says nothing.
func toNode(ctx context.Context, option rueidis.ClientOption, address string) rueidis.ClientOption {
	option.InitAddress, option.ShuffleInit = []string{address}, false
	option.ForceSingleClient, option.Sentinel, option.Standalone = true, rueidis.SentinelOption{}, rueidis.StandaloneOption{}
	dial := dialerOf(option)
	option.DialCtxFn = func(dialing context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		dialing, cancel := context.WithCancel(dialing)
		context.AfterFunc(ctx, cancel)
		conn, err := dial(dialing, address, dialer, encryption)
		if err != nil {
			cancel()
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		return conn, nil
	}
	return option
}

// clockOf reads the answer to TIME.
func clockOf(result rueidis.RedisResult) (time.Time, error) {
	parts, err := result.AsIntSlice()
	if err == nil && len(parts) != 2 {
		err = errClock
	}
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}

var errClock = errors.New("redis: unexpected reply to TIME")
