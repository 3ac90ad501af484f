// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/anystore"
)

// urlVariables say where the locks are. The second one is for locks in Redis, and of use if the first one is empty.
var urlVariables = []string{"ASYNCLOCK_STORE", "ASYNCLOCK_REDIS_URL"}

const environmentHelp = `
Say where the locks are by --store or by the environment variable ASYNCLOCK_STORE.
Prefer the variable if others can see the command line. There is no default,
because two machines that lock in different places do not exclude each other:

  redis://user:password@host:6379/0             Redis; rediss:// for TLS
  redis://host1:26379?addr=host2:26379&master_set=main    Sentinel
  redis://host1:6379?addr=host2:6379&addr=host3:6379      Cluster
  unix:///run/redis/redis.sock                  a socket
  postgres://user:password@host:5432/database   PostgreSQL
  mysql://user:password@host:3306/database      MariaDB
  zk://user:password@host1:2181,host2:2181/root ZooKeeper; zks:// for TLS
  spring+redis://host:6379/0?registry=locks     Java's RedisLockRegistry
  spring+postgres://host:5432/database?region=DEFAULT     JdbcLockRegistry,
                                                also spring+mysql://

Special characters in user and password are percent-encoded. What else a URL may
say, such as prefix, region and session_timeout, is in the documentation of
github.com/asynclock/asynclock-go/store/anystore. --prefix NAME is the parameter
prefix. For Redis, ASYNCLOCK_REDIS_URL and --redis are good, too. A database
needs tables, which 'asynclock migrate' makes.
`

// closePatience bounds how long the command waits for the server at the end, perhaps because of a
// signal. If the server is silent, the client's own grace adds to it.
const closePatience = time.Second

// A connection is a lock client, which owns the store that was opened for it.
type connection struct{ *asynclock.Client }

// connect opens the store that the command line and the environment give, and a client.
func (a *app) connect(ctx context.Context, options ...asynclock.ClientOption) (*connection, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	return a.client(st, options...)
}

// openStore opens the store alone. Close it.
func (a *app) openStore(ctx context.Context) (*anystore.Store, error) {
	url, err := a.location()
	if err != nil {
		return nil, err
	}
	st, err := anystore.Open(ctx, url, anystore.WithLogger(a.logger()))
	return st, a.prefixed(err)
}

// prefixed says in an error about the URL what of it was a flag.
func (a *app) prefixed(err error) error {
	if a.prefix != "" && errors.Is(err, asynclock.ErrInvalidOption) {
		return fmt.Errorf("%w; --prefix is its parameter prefix", err)
	}
	return err
}

// location returns the store's URL with the prefix.
func (a *app) location() (string, error) {
	text := a.url
	for _, variable := range urlVariables {
		text = cmp.Or(text, os.Getenv(variable))
	}
	if text == "" {
		return "", &exitError{code: exitUsage, err: fmt.Errorf("no store: give --store URL or set %s", urlVariables[0])}
	}
	if a.prefix == "" {
		return text, nil
	}
	separator := "?"
	if strings.Contains(text, "?") {
		separator = "&"
	}
	return text + separator + "prefix=" + url.QueryEscape(a.prefix), nil
}

// logger returns where the client and the store log: nowhere, unless the user wants it. The command itself says what
// its user needs.
func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.messages, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// client makes a client that owns the store.
func (a *app) client(st store.Store, options ...asynclock.ClientOption) (*connection, error) {
	client, err := asynclock.New(st, append(options, asynclock.WithOwnedStore(), asynclock.WithLogger(a.logger()))...)
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
