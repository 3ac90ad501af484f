// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// places are a place of each kind, and another place on the same server, which parameters tell apart.
var places = map[string]struct {
	server     server
	here, away func(url string) string
}{
	"redis":    {redisServer, parameters("prefix=anystore"), parameters("prefix=elsewhere&counter_ttl=48h&failover_grace=off")},
	"postgres": {postgresServer, parameters("prefix=anystore_&pool_max_conns=2"), parameters("prefix=elsewhere_&notifications=off&poll_interval=20ms")},
	"mysql":    {mysqlServer, parameters("prefix=anystore_&timeout=5s"), parameters("prefix=elsewhere_&poll_interval=20ms")},
	"zookeeper": {
		zookeeperServer, func(url string) string { return url + "/anystore/here?session_timeout=6s&tick_time=2s" },
		func(url string) string { return url + "?short_ttls=on" },
	},
	"spring in redis":    {redisServer, spring("registry=here&lock_type=pubsub"), spring("registry=away&poll_interval=20ms")},
	"spring in postgres": {postgresServer, spring("prefix=ANY_&region=here"), spring("prefix=ANY_&region=away&poll_interval=20ms")},
	"spring in mysql":    {mysqlServer, spring("prefix=ANY_&region=here&spring_version=7"), spring("prefix=ANYSIX_&region=here&spring_version=6&repository_ttl=20s")},
}

func parameters(text string) func(string) string {
	return func(url string) string { return with(url, text) }
}

func spring(text string) func(string) string {
	return func(url string) string { return "spring+" + with(url, text) }
}

// TestOpen: clients of one URL exclude each other, and its parameters say where the locks are.
func TestOpen(t *testing.T) {
	t.Parallel()
	for name, p := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := p.server(t)
			one, two, third := openClient(t, p.here(server)), openClient(t, p.here(server)), openClient(t, p.away(server))
			key := uuid.NewString()
			held, err := one.Lock(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := two.TryLock(t.Context(), key); !errors.Is(err, asynclock.ErrHeld) {
				t.Errorf("the same URL: got %v, want ErrHeld", err)
			}
			if lease, err := third.Lock(t.Context(), key); err != nil {
				t.Errorf("another place: got %v, want the key", err)
			} else if err := lease.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			if err := held.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// openClient opens a client by a URL, once there are tables.
func openClient(t *testing.T, url string) *asynclock.Client {
	t.Helper()
	for range 2 { // also if they are there
		if err := Migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	st, err := Open(t.Context(), url, WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	c, err := asynclock.New(st, asynclock.WithOwnedStore(), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestOpenFails: a server that is not there, and one that accepts and says nothing, is ErrUnreachable. A context that
// has ended is that.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	gone, silent := listen(t), listen(t)
	_ = gone.Close()
	for _, scheme := range []string{"redis", "postgres", "mysql", "zk", "spring+redis", "spring+postgres", "spring+mysql"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			url := func(l net.Listener) string {
				url := scheme + "://me:s3cret@" + l.Addr().String()
				if strings.HasPrefix(scheme, "spring+redis") {
					url += "?registry=r"
				}
				return url
			}
			refused := func(t *testing.T, want, err error) {
				t.Helper()
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				} else if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, which has the password", err)
				}
			}
			for what, l := range map[string]net.Listener{"nobody there": gone, "silence": silent} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					_, err := Open(t.Context(), url(l), WithoutLogger())
					refused(t, store.ErrUnreachable, err)
				})
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := Open(ended, url(silent), WithLogger(slog.New(slog.DiscardHandler)))
			refused(t, context.Canceled, err)
			if strings.HasSuffix(scheme, "sql") || strings.HasSuffix(scheme, "postgres") {
				refused(t, context.Canceled, Migrate(ended, url(silent)))
			}
		})
	}
}

// TestOpenEndsWithItsContext: nobody waits for a server that says nothing.
func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends with the connection, or with the listener
		conn, err := l.Accept()
		if err == nil {
			cancel()
			time.AfterFunc(time.Second, func() { _ = conn.Close() }) // only then Redis' own Open ends
		}
	}()
	if _, err := Open(ctx, "redis://"+l.Addr().String(), WithoutLogger()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context has ended", err)
	}
}

// listen returns a server that says nothing.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestZeroStore(t *testing.T) {
	t.Parallel()
	storetest.Zero(t, new(Store))
}

// TestInput: bad options are refused, and so is a parameter that nobody knows, by whoever reads it.
func TestInput(t *testing.T) {
	t.Parallel()
	for _, opt := range []Option{nil, WithLogger(nil)} {
		if _, err := Open(t.Context(), "redis://127.0.0.1:1", opt); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("got %v, want ErrInvalidOption", err)
		}
	}
	for name, p := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := with(p.here(p.server(t)), "prefx=locks")
			_, err := Open(t.Context(), url, WithoutLogger())
			for what, err := range map[string]error{"Open": err, "Migrate": Migrate(t.Context(), url)} {
				name, _, _ := strings.Cut(url, "://")
				if !errors.Is(err, store.ErrInvalidOption) && (what == "Open" || schemes[name].migrate != nil) {
					t.Errorf("%s: got %v, want ErrInvalidOption", what, err)
				}
			}
		})
	}
}
