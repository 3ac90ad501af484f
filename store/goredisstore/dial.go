// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A dialFunc is the type of rueidis.ClientOption.DialCtxFn.
type dialFunc = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error)

// dialer returns how connections are dialed, or nil if redisstore's own way will do. It has a limit
// for each address, so it is preferred.
func dialer(o *redis.Options) dialFunc {
	network := cmp.Or(o.Network, "tcp")
	switch dial := o.Dialer; {
	case dial != nil:
		limit, dials := cmp.Or(o.DialTimeout, dialDefault), make(chan struct{}, dialsAtOnce)
		return func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialWithin(ctx, limit, dials, func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) })
		}
	case network == "tcp":
		return nil
	}
	return dialNetwork(network)
}

// dialNetwork dials as rueidis does, in another network than tcp.
func dialNetwork(network string) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		if encryption == nil {
			return dialer.DialContext(ctx, network, address)
		}
		encrypted := tls.Dialer{NetDialer: dialer, Config: encryption}
		return encrypted.DialContext(ctx, network, address)
	}
}

// dialsAtOnce is how many dials of a store may be under way. Those that hang stay so.
const dialsAtOnce = 32

// dialWithin returns at the limit, or when ctx ends, although a dialer of the application may ignore both. It then leaves the
// dial to itself, and closes what comes of it. A panic is an error.
func dialWithin(ctx context.Context, limit time.Duration, dials chan struct{}, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case dials <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type outcome struct {
		conn net.Conn
		err  error
	}
	done := make(chan outcome)
	go func() { // ends with the dial; nobody waits for one that hangs
		defer func() { <-dials }()
		var got outcome
		func() {
			defer redisconn.Recovered(&got.err)
			got.conn, got.err = dial(ctx)
		}()
		select {
		case done <- got:
		case <-ctx.Done():
			if got.err == nil && got.conn != nil { // with an error it may be a nil pointer
				_ = got.conn.Close()
			}
		}
	}()
	select {
	case got := <-done:
		return got.conn, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
