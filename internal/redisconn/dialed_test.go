// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// A Cluster's client closes its connections after its Close has returned. If one of them is closed before, rueidis looks
// for the servers again, asleep for up to a second.
func TestTheEndOfConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ closedAfter, want time.Duration }{
		"rueidis closes it":  {closedAfter: 500 * time.Millisecond, want: 500 * time.Millisecond},
		"rueidis forgets it": {closedAfter: time.Hour, want: closesWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d dialed
				near, far := net.Pipe()
				dial := d.dialer(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return near, nil })
				conn, err := dial(t.Context(), "", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				time.AfterFunc(c.closedAfter, func() { conn.Close() })
				var seen time.Duration
				go func() {
					_, _ = far.Read(make([]byte, 1)) // until the end
					seen = time.Since(began)
				}()
				d.end()
				synctest.Wait()
				if took := time.Since(began); took != c.want || seen != c.want {
					t.Errorf("end returned after %v, and the connection was closed after %v: want %v", took, seen, c.want)
				}
				if _, err := dial(t.Context(), "", nil, nil); !errors.Is(err, rueidis.ErrClosing) {
					t.Errorf("a dial afterwards: got %v, want ErrClosing", err)
				}
			})
		})
	}
}

// An endingClient is a client whose Close waits, as that of a Sentinel does for a dial.
type endingClient struct {
	rueidis.Client
	waits func()
}

func (c endingClient) Close() { c.waits() }

// A sentinel that says nothing to TLS takes seconds.
func TestCloseEndsTheDialThatRueidisWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Conn
		dials := 0
		dial := c.dialed.dialer(func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			dials++
			timer := time.NewTimer(time.Minute)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return nil, errors.New("no handshake")
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := dial(t.Context(), "", nil, nil); !errors.Is(err, rueidis.ErrClosing) {
				t.Errorf("the dial: got %v, want ErrClosing", err)
			}
		}()
		synctest.Wait()
		client := endingClient{waits: func() { <-done }}
		c.owned, c.Commands, c.Inboxes = true, client, client
		began := time.Now()
		c.Close()
		if took := time.Since(began); took != closesWithin {
			t.Errorf("Close took %v, want %v", took, closesWithin)
		}
		if _, err := dial(t.Context(), "", nil, nil); !errors.Is(err, rueidis.ErrClosing) || dials != 1 {
			t.Errorf("a dial afterwards: got %v and %d dials in all, want ErrClosing and one", err, dials)
		}
	})
}

// A dialer of the application's may ignore its context. Its connection is closed when it comes.
func TestTheEndDoesNotWaitForADialer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d dialed
		near, far := net.Pipe()
		dial := d.dialer(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			time.Sleep(time.Minute)
			return near, nil
		})
		refused := make(chan error, 1)
		go func() {
			_, err := dial(t.Context(), "", nil, nil)
			refused <- err
		}()
		synctest.Wait()
		began := time.Now()
		d.end()
		if took := time.Since(began); took != 0 {
			t.Errorf("end took %v, want it at once", took)
		}
		if err := <-refused; !errors.Is(err, rueidis.ErrClosing) {
			t.Errorf("the dial: got %v, want ErrClosing", err)
		}
		if _, err := far.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is open")
		}
	})
}

// A dialer may tie a connection to the context of its dial.
func TestAConnectionKeepsTheContextOfItsDial(t *testing.T) {
	t.Parallel()
	var d dialed
	var tied context.Context
	dial := d.dialer(func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		tied = ctx
		near, _ := net.Pipe()
		return near, nil
	})
	conn, err := dial(t.Context(), "", nil, nil)
	if err != nil || tied.Err() != nil {
		t.Fatalf("got %v and a context with %v, want a connection and a context that lives", err, tied.Err())
	}
	_ = conn.Close()
	if tied.Err() == nil {
		t.Error("the context outlives the connection")
	}
}

// A dial function of the application's may ignore that its context ends. Its connection is then closed.
func TestAnAbandonedDialLeavesNoConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d dialed
		far := make(chan net.Conn, 1)
		dial := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			time.Sleep(time.Second)
			near, other := net.Pipe()
			far <- other
			return near, nil
		}
		time.AfterFunc(time.Millisecond, d.abandon)
		if _, err := d.dialer(dial)(t.Context(), "", nil, nil); !errors.Is(err, rueidis.ErrClosing) {
			t.Errorf("the dial: got %v, want ErrClosing", err)
		}
		if err := (<-far).SetDeadline(time.Now()); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection: got %v, want it closed", err)
		}
	})
}
