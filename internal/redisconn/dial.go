// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"

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

// answerWithin is how long a dial waits for a host that says nothing. A host that is down says
// nothing, for good. While rueidis dials the old primary, it follows no failover to the new one.
const answerWithin = time.Second

// dialPromptly is [dialTCP] with the limit answerWithin for the host's first answer. Encryption takes
// several round trips, and may take the dialer's Timeout. So may a name, because it may stand for
// several hosts, which are tried one after the other.
func dialPromptly(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
	host, err := netip.ParseAddrPort(address)
	if err != nil {
		return dialTCP(ctx, address, dialer, encryption)
	}
	prompt := *dialer
	prompt.Timeout = answerWithin
	conn, err := prompt.DialContext(ctx, "tcp", address)
	if err != nil || encryption == nil {
		return conn, err
	}
	if encryption.ServerName == "" {
		encryption = encryption.Clone()
		encryption.ServerName = host.Addr().String()
	}
	ctx, cancel := context.WithTimeout(ctx, dialer.Timeout)
	defer cancel()
	encrypted := tls.Client(conn, encryption)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return encrypted, nil
}
