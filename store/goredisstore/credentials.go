// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// credentials asks the provider for each connection, the one with a context first. A user without a
// password is left out, as go-redis does.
func credentials(o *redis.Options) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	ask := o.CredentialsProviderContext
	if plain := o.CredentialsProvider; ask == nil && plain != nil {
		ask = func(context.Context) (user, password string, err error) {
			user, password = plain()
			return user, password, nil
		}
	}
	if ask == nil {
		return nil
	}
	limit := cmp.Or(o.DialTimeout, dialDefault)
	return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		user, password, err := ask(ctx)
		if err != nil || password == "" {
			return rueidis.AuthCredentials{}, err
		}
		return rueidis.AuthCredentials{Username: user, Password: password}, nil
	}
}

// promptly is how long a dial may take here without a DialTimeout. While rueidis dials an old primary,
// it follows no failover. Elsewhere redisstore sees to that.
const promptly = time.Second

// A sentinelConn is a connection to a sentinel, which its address tells rueidis' hook.
type sentinelConn struct{ net.Conn }

type sentinelAddr struct{ net.Addr }

func (c sentinelConn) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

// ownCredentials keeps a provider's credentials from the sentinels, which have their own. rueidis
// would send them there, too. Its hook learns nothing but an address, so the dialer marks these: the
// resolver is the usual one, and its identity is the mark of a dialer that is for sentinels.
func ownCredentials(option *rueidis.ClientOption) {
	provided := option.AuthCredentialsFn
	if provided == nil {
		return
	}
	mark := new(net.Resolver)
	option.Sentinel.Dialer.Resolver = mark
	dial := option.DialCtxFn
	if dial == nil {
		dial = dialNetwork("tcp")
		option.Dialer.Timeout = cmp.Or(option.Dialer.Timeout, promptly)
		option.Sentinel.Dialer.Timeout = option.Dialer.Timeout
	}
	option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, address, dialer, encryption)
		if err == nil && dialer.Resolver == mark {
			conn = sentinelConn{conn}
		}
		return conn, err
	}
	sentinel := rueidis.AuthCredentials{Username: option.Sentinel.Username, Password: option.Sentinel.Password}
	option.AuthCredentialsFn = func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		if _, ok := c.Address.(sentinelAddr); ok {
			return sentinel, nil
		}
		return provided(c)
	}
}
