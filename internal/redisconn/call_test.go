// SPDX-License-Identifier: Apache-2.0

package redisconn_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A network leads to a server in a synctest bubble, and may be silent.
type network struct {
	server *miniredis.Miniredis

	mu       sync.Mutex
	speaks   chan struct{} // closed unless it is silent
	refuses  bool
	dialTime time.Duration
	links    []net.Conn
}

// A link is a connection that delivers nothing while its network is silent.
type link struct {
	net.Conn

	network *network
	closed  chan struct{}
	once    sync.Once
}

func (n *network) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.speaks = make(chan struct{})
}

func (n *network) speak() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.speaks)
}

func (n *network) speech() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.speaks
}

// cut closes all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		_ = l.Close()
	}
	n.links = nil
}

// dialsTake sets how long a dial takes from now on.
func (n *network) dialsTake(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialTime = d
}

// refuse says whether dials fail from now on.
func (n *network) refuse(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuses = on
}

// dial hangs while the network is silent, whatever becomes of its context.
func (n *network) dial(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	<-n.speech()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuses {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	if n.dialTime > 0 {
		n.mu.Unlock()
		wait := time.NewTimer(n.dialTime)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		n.mu.Lock()
		if ctx.Err() != nil {
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
	}
	conn, err := n.server.Dial()
	if err != nil {
		return nil, err
	}
	l := &link{Conn: conn, network: n, closed: make(chan struct{})}
	n.links = append(n.links, l)
	return l, nil
}

func (l *link) Read(p []byte) (int, error) {
	read, err := l.Conn.Read(p)
	select {
	case <-l.network.speech():
		return read, err
	case <-l.closed:
		return 0, net.ErrClosed
	}
}

func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Conn.Close()
}

// onEachWay runs a test in virtual time: with connections of a store's own, on which callers speak
// themselves, and with an application's client, where they don't.
func onEachWay(t *testing.T, test func(*testing.T, *redisconn.Conn, *network)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T, rueidis.ClientOption) *redisconn.Conn{
		"own": openOwn, "own/pipeline": openOwn, "shared": openShared, "shared/pipeline": openShared,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, option := newNetwork(t)
				conn := open(t, option)
				defer leave(conn)
				test(t, conn, n)
			})
		})
	}
}

func openOwn(t *testing.T, option rueidis.ClientOption) *redisconn.Conn {
	t.Helper()
	conn, err := redisconn.Open(option)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func openShared(t *testing.T, option rueidis.ClientOption) *redisconn.Conn {
	t.Helper()
	client, err := rueidis.NewClient(redisconn.ForLocks(option))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := redisconn.Share(client)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func newNetwork(t *testing.T) (*network, rueidis.ClientOption) {
	t.Helper()
	server, option := redistest.InBubble(t)
	n := &network{server: server, speaks: make(chan struct{})}
	close(n.speaks)
	option.DialCtxFn = n.dial
	return n, option
}

// leave closes the connection, and lets rueidis' last timers end.
func leave(conn *redisconn.Conn) {
	conn.Close()
	if conn.Commands == conn.Inboxes { // an application's client
		conn.Commands.Close()
	}
	time.Sleep(time.Minute)
}

// ask sends a command with a context that ends after patience.
func ask(t *testing.T, conn *redisconn.Conn, patience time.Duration) (took time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	if strings.HasSuffix(t.Name(), "/pipeline") {
		err = conn.DoMulti(ctx, echo(conn), echo(conn))[1].Error()
	} else {
		err = conn.Do(ctx, echo(conn)).Error()
	}
	return time.Since(began), err
}

func echo(conn *redisconn.Conn) rueidis.Completed {
	return conn.Commands.B().Arbitrary("ECHO", "x").Build()
}

// wantInTime asks at once as often as said. Each call is to end with its context, to the nanosecond
// of virtual time.
func wantInTime(t *testing.T, conn *redisconn.Conn, callers int, patience time.Duration) {
	t.Helper()
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			if took, err := ask(t, conn, patience); took != patience || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v after %v, want DeadlineExceeded after %v", err, took, patience)
			}
		})
	}
	calls.Wait()
}

// wantAnswers asks at once as often as said, and each call is to be answered.
func wantAnswers(t *testing.T, conn *redisconn.Conn, callers int) {
	t.Helper()
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			if _, err := ask(t, conn, time.Minute); err != nil {
				t.Errorf("got %v, want an answer", err)
			}
		})
	}
	calls.Wait()
}

// The server stops, and goes on being stopped while rueidis gives its connection up and dials
// another one, which hangs.
func TestACallEndsWithItsContextWhenTheServerIsSilent(t *testing.T) {
	t.Parallel()
	onEachWay(t, func(t *testing.T, conn *redisconn.Conn, n *network) {
		wantAnswers(t, conn, 3000)
		n.silence()
		wantInTime(t, conn, 3000, 100*time.Millisecond)
		var rounds sync.WaitGroup
		for range 50 * 8 {
			rounds.Go(func() { wantInTime(t, conn, 1, 100*time.Millisecond) })
			time.Sleep(time.Second / 50)
		}
		rounds.Wait()
		n.speak()
		time.Sleep(time.Second)
		wantAnswers(t, conn, 3000) // no place was lost
	})
}

// The server goes on before anybody has given its connection up.
func TestPlacesComeBackWhenTheServerGoesOn(t *testing.T) {
	t.Parallel()
	onEachWay(t, func(t *testing.T, conn *redisconn.Conn, n *network) {
		for range 2 {
			n.silence()
			wantInTime(t, conn, 1500, 100*time.Millisecond)
			n.speak()
			wantAnswers(t, conn, 1500)
		}
	})
}

func TestADialThatHangsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	onEachWay(t, func(t *testing.T, conn *redisconn.Conn, n *network) {
		wantAnswers(t, conn, 1)
		n.silence()
		n.cut()
		synctest.Wait()
		wantInTime(t, conn, 100, 50*time.Millisecond)
		wantInTime(t, conn, 100, 50*time.Millisecond)
		n.speak()
		time.Sleep(time.Second)
		wantAnswers(t, conn, 100)
	})
}

// Callers with little time connect all the same, for the next ones.
func TestADialOutlivesItsCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, option := newNetwork(t)
		conn := openOwn(t, option)
		defer leave(conn)
		n.dialsTake(120 * time.Millisecond)
		n.cut()
		synctest.Wait()
		wantInTime(t, conn, 10, 50*time.Millisecond)
		wantInTime(t, conn, 10, 50*time.Millisecond)
		time.Sleep(30 * time.Millisecond)
		if took, err := ask(t, conn, 50*time.Millisecond); took != 0 || err != nil {
			t.Errorf("got %v after %v, want an answer over the connection that is there now", err, took)
		}
	})
}

func TestWithoutAConnectionACallFailsAtOnce(t *testing.T) {
	t.Parallel()
	onEachWay(t, func(t *testing.T, conn *redisconn.Conn, n *network) {
		n.refuse(true)
		n.cut()
		synctest.Wait()
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				took, err := ask(t, conn, time.Minute)
				if err = conn.Failure(err); took > time.Second || !errors.Is(err, store.ErrUnreachable) {
					t.Errorf("got %v after %v, want ErrUnreachable at once", err, took)
				}
			})
		}
		calls.Wait()
		n.refuse(false)
		wantAnswers(t, conn, 100)
	})
}

// A caller that waits for a dial when the store is closed learns that.
func TestCloseEndsTheWaitForADial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, option := newNetwork(t)
		conn := openOwn(t, option)
		n.dialsTake(time.Hour)
		n.cut()
		synctest.Wait()
		var calls sync.WaitGroup
		calls.Go(func() {
			if took, err := ask(t, conn, time.Minute); took != time.Second || !errors.Is(conn.Failure(err), store.ErrClosed) {
				t.Errorf("got %v after %v, want ErrClosed after a second", conn.Failure(err), took)
			}
		})
		time.Sleep(time.Second)
		conn.Close()
		calls.Wait()
		time.Sleep(time.Minute)
	})
}
