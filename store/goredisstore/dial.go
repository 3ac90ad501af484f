// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/go-redis/v9"
)

// A dialFunc is the type of rueidis.ClientOption.DialCtxFn.
type dialFunc = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error)

// dialer returns how connections are dialed, or nil if redisstore's own way will do. It has a limit
// for each address, so it is preferred.
func dialer(o *redis.Options) dialFunc {
	network := cmp.Or(o.Network, "tcp")
	switch dial := o.Dialer; {
	case dial != nil:
		limit := cmp.Or(o.DialTimeout, dialDefault)
		return func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return dial(ctx, network, address)
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
