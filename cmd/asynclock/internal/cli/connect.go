// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const urlVariable = "ASYNCLOCK_REDIS_URL"

const environmentHelp = `
Give the server by --redis or by the environment variable ASYNCLOCK_REDIS_URL.
Prefer the variable if others can see the command line. There is no default,
because two machines that lock on different servers do not exclude each other:

  redis://user:password@host:6379/0             one server; rediss:// for TLS
  redis://host1:26379?addr=host2:26379&master_set=main    Sentinel
  redis://host1:6379?addr=host2:6379&addr=host3:6379      Cluster
  unix:///run/redis/redis.sock                  a socket

Special characters in user and password are percent-encoded. The parameters are
those of github.com/redis/rueidis: addr, client_cache, client_name, db,
dial_timeout, master_set, max_retries, protocol, skip_verify and write_timeout.
Further ones are sentinel_username and sentinel_password, the user of the sentinels,
and server_name, the name in the certificates. Other parameters, and an addr without
a port, are refused.
`

// closePatience bounds how long the command waits for the server at the end, perhaps because of a
// signal. If the server is silent, the client's own grace adds to it.
const closePatience = time.Second

// A connection is a lock client, which owns the store that was opened for it.
type connection struct{ *asynclock.Client }

// connect opens the store that the command line and the environment give.
func (a *app) connect(options ...asynclock.ClientOption) (*connection, error) {
	url := a.server()
	if url == "" {
		return nil, &exitError{exitUsage, errors.New("no server: give --redis URL or set " + urlVariable)}
	}
	return a.connectBy(func(options ...redisstore.Option) (*redisstore.Store, error) {
		return redisstore.OpenURL(url, options...)
	}, options...)
}

// server returns the server's URL from the command line or the environment.
func (a *app) server() string { return cmp.Or(a.url, os.Getenv(urlVariable)) }

// connectBy opens the store by open.
func (a *app) connectBy(open func(...redisstore.Option) (*redisstore.Store, error), options ...asynclock.ClientOption) (*connection, error) {
	// The command itself says what its user needs.
	options = append(options, asynclock.WithOwnedStore(), asynclock.WithoutLogger())
	storeOptions := []redisstore.Option{redisstore.WithPrefix(a.prefix), redisstore.WithoutLogger()}
	if a.verbose {
		logger := slog.New(slog.NewTextHandler(a.messages, &slog.HandlerOptions{Level: slog.LevelDebug}))
		options = append(options, asynclock.WithLogger(logger))
		storeOptions = append(storeOptions, redisstore.WithLogger(logger))
	}
	store, err := open(storeOptions...)
	if err != nil {
		return nil, err
	}
	client, err := asynclock.New(store, options...)
	if err != nil {
		return nil, err
	}
	return &connection{client}, nil
}

// close ends the client and the store.
func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_ = c.Close(ctx) // the TTL ends what it could not finish
}
