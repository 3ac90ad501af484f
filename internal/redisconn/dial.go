// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// A dialFunc is the type of rueidis.ClientOption.DialCtxFn.
type dialFunc = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error)

// dialerOf returns what rueidis dials with.
func dialerOf(option rueidis.ClientOption) dialFunc {
	switch plain := option.DialFn; {
	case option.DialCtxFn != nil:
		return option.DialCtxFn
	case plain != nil:
		return func(_ context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
			return plain(address, dialer, encryption)
		}
	}
	return dialTCP
}

func dialTCP(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
	if encryption == nil {
		return dialer.DialContext(ctx, "tcp", address)
	}
	encrypted := tls.Dialer{NetDialer: dialer, Config: encryption}
	return encrypted.DialContext(ctx, "tcp", address)
}
