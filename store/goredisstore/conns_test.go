// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a dialer, whose other ends write what is sent to them.
type pipes map[net.Conn]net.Conn // by ours

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p[ours] = theirs
	return ours, nil
}

// ask sends something on a connection, which the server takes.
func (p pipes) ask(t *testing.T, one *conn) {
	t.Helper()
	go one.Write([]byte("?")) //nolint:errcheck // the other end sees it
	if _, err := p[one.Conn].Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// answer sends something back.
func (p pipes) answer(t *testing.T, one *conn) {
	t.Helper()
	go p[one.Conn].Write([]byte("!")) //nolint:errcheck // the other end sees it
	if _, err := one.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
}

// A call that waits for long makes idle connections to its server doubtful. They are closed before the next call, and not
// those that were answered since, that are in use, that wait for messages, or that are another server's.
func TestIdleConnectionsAreDoubted(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} { // the call that waits
		synctest.Test(t, func(t *testing.T) {
			server, all := make(pipes), newConns()
			connect := func(ctx context.Context, address string) *conn {
				got, err := all.dialer(server.dial, time.Minute)(ctx, "tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				return got.(*conn) //nolint:forcetypeassert // it is
			}
			idle, waiting, answered, used, other := connect(t.Context(), "a"), connect(t.Context(), "a"), connect(t.Context(), "a"), connect(t.Context(), "a"), connect(t.Context(), "b")
			messages := connect(context.WithValue(t.Context(), forMessages{}, new(atomic.Bool)), "a")
			server.ask(t, waiting)
			time.Sleep(suspectAfter - time.Millisecond)
			server.ask(t, answered)
			server.answer(t, answered)
			server.ask(t, used)
			all.doubt("a")
			if idle.closed.Load() {
				t.Error("an idle connection was closed early")
			}
			time.Sleep(time.Millisecond)
			if ended {
				_ = waiting.Close()
			} else {
				all.doubt("a")
			}
			if !idle.closed.Load() {
				t.Errorf("a call has ended %t: the idle connection is open", ended)
			}
			if _, err := idle.SyscallConn(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("SyscallConn: got %v, want ErrClosed, for go-redis to take another one", err)
			}
			for i, one := range []*conn{answered, used, other, messages} {
				if one.closed.Load() {
					t.Errorf("a call has ended %t: number %d was closed", ended, i)
				}
			}
			all.end()
			if _, err := all.dialer(server.dial, time.Minute)(t.Context(), "tcp", "a"); err == nil || len(all.open) != 0 {
				t.Errorf("at the end: got %v and %d connections, want an error and none", err, len(all.open))
			}
		})
	}
}
