// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
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
	prompt := *dialer
	if _, err := netip.ParseAddrPort(address); err == nil {
		prompt.Timeout = answerWithin
	}
	conn, err := prompt.DialContext(ctx, "tcp", address)
	if err != nil || encryption == nil {
		return conn, err
	}
	if encryption.ServerName == "" {
		encryption = encryption.Clone()
		encryption.ServerName, _, _ = net.SplitHostPort(address) // it was dialed, so it is one
	}
	ctx, cancel := context.WithTimeout(ctx, dialer.Timeout)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	go func() { // ends with ctx; nobody waits for it
		if speaksPlainly(ctx, address, &prompt) {
			refuse(errPlain)
		}
	}()
	encrypted := tls.Client(conn, encryption)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if errors.Is(context.Cause(ctx), errPlain) {
			err = errPlain
		}
		return nil, err
	}
	return encrypted, nil
}

var errPlain = errors.New("the server speaks without TLS, and the options are for TLS")

// speaksPlainly asks a server that says nothing to TLS whether it speaks without. Redis takes the first
// message of TLS for the beginning of a command, and waits for the rest. It is asked each answerWithin
// until it can be reached: one dial may be late, and the handshake has the whole Timeout.
func speaksPlainly(ctx context.Context, address string, dialer *net.Dialer) bool {
	for next := time.Tick(answerWithin); ; {
		select {
		case <-ctx.Done():
			return false
		case <-next:
		}
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			return answersPlainly(ctx, conn)
		}
	}
}

// answersPlainly sends a question without TLS, and closes conn.
func answersPlainly(ctx context.Context, conn net.Conn) bool {
	closes := sync.OnceFunc(func() { _ = conn.Close() })
	defer closes()
	defer context.AfterFunc(ctx, closes)()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	var first [1]byte
	n, _ := conn.Read(first[:])
	return n == 1 && (first[0] == '+' || first[0] == '-') // TLS begins otherwise
}
