// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A doorway is how a store reaches a server in its bubble.
type doorway struct {
	dial func() (net.Conn, error) // to the server

	mu    sync.Mutex
	state doorState
	dials int
	open  int // connections
}

type doorState int

const (
	refuses doorState = iota
	hangs             // a connection is made, and nobody answers
	serves
)

// lazily opens a store in a bubble with a server that is down.
func lazily(t *testing.T, change func(*rueidis.ClientOption), opts ...Option) (*Store, *doorway) {
	t.Helper()
	mini, option := redistest.InBubble(t)
	mini.RequireAuth("right")
	d := &doorway{dial: mini.Dial}
	option.ForceSingleClient, option.Password, option.DialCtxFn = false, "right", d.through
	if change != nil {
		change(&option)
	}
	st, err := Open(option, append([]Option{WithLazyDial(), WithoutFailoverGrace(), WithoutLogger()}, opts...)...)
	if err != nil {
		t.Fatalf("Open: got %v, want a store", err)
	}
	t.Cleanup(func() {
		st.Close()
		if n := d.connections(); n != 0 {
			t.Errorf("after Close: got %d connections, want none", n)
		}
		time.Sleep(time.Minute) // rueidis' last timers
	})
	return st, d
}

func (d *doorway) through(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dials++
	var conn net.Conn
	switch d.state {
	case refuses:
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case hangs:
		conn, _ = net.Pipe()
	case serves:
		var err error
		if conn, err = d.dial(); err != nil {
			return nil, err
		}
	}
	d.open++
	return &countedConn{conn, sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open--
	})}, nil
}

func (d *doorway) is(state doorState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
}

// dialed returns how often the server was dialed since it was last asked.
func (d *doorway) dialed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.dials = 0 }()
	return d.dials
}

func (d *doorway) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// A countedConn is one of a doorway until it is closed.
type countedConn struct {
	net.Conn
	closes func()
}

func (c *countedConn) Close() error {
	c.closes()
	return c.Conn.Close()
}

func TestALazyStoreWaitsForItsServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var written kit.Journal
		st, d := lazily(t, nil, WithLogger(written.Logger(slog.LevelInfo)))
		a, b := redistest.Join(t, st, store.EventResync, store.EventDisconnected), redistest.Join(t, st, store.EventResync, store.EventDisconnected)
		began := time.Now()
		wantNoServer(t, a)
		if took := time.Since(began); took > 3*settleWithin {
			t.Errorf("requests of a server that is down: got %v, want errors at once", took)
		}
		d.dialed()
		for range 200 {
			time.Sleep(10 * time.Millisecond)
			a.Acquire(redistest.Attempt("key", "a"))
		}
		if n := d.dialed(); n < 8 || n > 10 {
			t.Errorf("dials in 2 s: got %d, want one each 200 ms", n)
		}
		found := make(map[string]store.Finding)
		st.Check(t.Context(), func(f store.Finding) { found[f.Check] = f })
		if got := found["server"]; got.Verdict != store.VerdictFail || !strings.Contains(got.Fact, "connection refused") {
			t.Errorf("Check: got %+v, want the reason", found)
		}
		time.Sleep(time.Hour)
		if text := written.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "no usable pub-sub") {
			t.Errorf("log: got %q, want one line", text)
		}

		d.is(serves)
		time.Sleep(redialAfter) // a subscription may have tried just now
		a.Hold("key", "a")
		came := time.Now()
		for b.Wait("key", "b").Recheck != 0 && time.Since(came) < 4*time.Second {
			time.Sleep(50 * time.Millisecond)
		}
		if took := time.Since(came); took > 3*time.Second {
			t.Errorf("messages: got none for %v after the server came, want them soon", took)
		}
		a.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Clean: true}})
		b.Heard(store.EventGrant, "b")
		if l := st.conn.Driver.(*lazyDriver); l.Cluster() || l.conn.Load().Cluster() {
			t.Error("Cluster, with one address: got true, want a single server")
		}
	})
}

// wantNoServer makes each request of a server that is down.
func wantNoServer(t *testing.T, c *redistest.Client) {
	t.Helper()
	ctx, s := t.Context(), c.Session
	two := []store.AcquireRequest{redistest.Attempt("key", "a"), redistest.Attempt("other", "a")}
	for name, err := range map[string]error{
		"Acquire":     c.Acquire(two[0]).Err,
		"Acquire two": s.Acquire(ctx, two)[1].Err,
		"Renew":       s.Renew(ctx, []store.RenewRequest{{Key: "key", Owner: "a", TTL: long}})[0].Err,
		"Release":     s.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0].Err,
		"Inspect":     func() error { _, err := s.Inspect(ctx, "key"); return err }(),
		"Force":       func() error { _, err := s.(*session).Force(ctx, "key", 0); return err }(),
		"List": func() (err error) {
			for _, err = range s.List(ctx, "") {
			}
			return err
		}(),
	} {
		if !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: got %v, want ErrUnreachable", name, err)
		}
	}
}

func TestALazyStoreSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, d := lazily(t, func(o *rueidis.ClientOption) { o.Password = "guess-9" })
		d.is(serves)
		time.Sleep(redialAfter)
		err := redistest.Join(t, st).Acquire(redistest.Attempt("key", "a")).Err
		if !errors.Is(err, store.ErrDenied) || strings.Contains(err.Error(), "guess-9") {
			t.Errorf("with a wrong password: got %v, want ErrDenied without it", err)
		}
	})
	for name, option := range map[string]rueidis.ClientOption{
		"no address":    {},
		"a multiplex":   {InitAddress: []string{"127.0.0.1:1"}, PipelineMultiplex: rueidis.MaxPipelineMultiplex + 1},
		"two opposites": {InitAddress: []string{"127.0.0.1:1"}, Sentinel: rueidis.SentinelOption{MasterSet: "main", TopologyRefreshInterval: -1}},
	} {
		if st, err := Open(option, WithLazyDial()); st != nil || !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Open with %s: got %v, %v; want ErrInvalidOption", name, st, err)
		}
	}
}

func TestALazyStoreEndsAHangingDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st, d := lazily(t, nil)
		c := redistest.Join(t, st)
		wantNoServer(t, c)
		d.is(hangs)
		time.Sleep(redialAfter)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := c.Session.Acquire(ctx, []store.AcquireRequest{redistest.Attempt("key", "a")})[0].Err; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire while a dial hangs: got %v, want the end of its context", err)
		}
		waits := make(chan error)
		go func() { waits <- c.Acquire(redistest.Attempt("key", "b")).Err }() // ends with Close
		synctest.Wait()
		st.Close()
		if err := <-waits; !errors.Is(err, store.ErrClosed) {
			t.Errorf("Acquire while the store is closed: got %v, want ErrClosed", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("Acquire and Close while a dial hangs: got %v, want some 100ms", took)
		}
	})
}

// The options say what the deployment is, before there is a connection.
func TestALazyStoreKnowsItsDeployment(t *testing.T) {
	t.Parallel()
	for variable, cluster := range map[string]bool{"ASYNCLOCK_REDIS_URL": false, "ASYNCLOCK_SENTINEL_URL": false, "ASYNCLOCK_CLUSTER_URL": true} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			sv := onServer(t, redistest.Option(t, variable))
			st := sv.store(t, WithLazyDial())
			l := st.conn.Driver.(*lazyDriver)
			if l.Cluster() != cluster {
				t.Errorf("Cluster: got %v, want %v", l.Cluster(), cluster)
			}
			a, b := join(t, st), join(t, st)
			a.Hold("key", "a")
			b.waitForMessage("key", "b")
			a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
			b.Heard(store.EventGrant, "b")
			if got := len(list(t, b, "")); got != 1 {
				t.Errorf("List: got %d keys, want 1", got)
			}
			if conn := l.conn.Load(); conn.Cluster() != cluster || conn.Sentinel() != l.Sentinel() {
				t.Errorf("the connection: got Cluster %v, Sentinel %v, want %v, %v", conn.Cluster(), conn.Sentinel(), cluster, l.Sentinel())
			}
		})
	}
}

// A client of one address can't have the keys of the other servers of a Cluster, ever.
func TestALazyStoreOfOneAddressOfAClusterIsRefused(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	sv.Option.InitAddress = sv.Option.InitAddress[:1]
	c := join(t, sv.store(t, WithLazyDial()))
	refused := 0
	for i := range 64 {
		err := c.Acquire(redistest.Attempt(strconv.Itoa(i), "a")).Err
		if err != nil {
			refused++
		}
		if err != nil && !errors.Is(err, store.ErrInvalidOption) {
			t.Fatalf("Acquire: got %v, want ErrInvalidOption", err)
		}
	}
	if refused == 0 {
		t.Error("no key is on another server")
	}
}
