// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestClosingAPoolOfASilentServer: connections that don't close are cut after a second, and none is opened then.
func TestClosingAPoolOfASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		d := &dialed{
			dial: func(context.Context, string, string) (net.Conn, error) { return client, nil },
			open: make(map[net.Conn]bool),
		}
		conn, err := d.Dial(t.Context(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		d.end(func() {
			_, err = conn.Read(make([]byte, 1)) // a statement that waits for its answer
			_, err2 := d.Dial(t.Context(), "tcp", "server")
			if !errors.Is(err2, net.ErrClosed) {
				t.Errorf("Dial: got %v, want that it is closed", err2)
			}
		})
		if took := time.Since(began); err == nil || took != farewell {
			t.Errorf("got %v after %v, want the end after %v", err, took, farewell)
		}
	})
}

// TestConnectionsThatCloseAreForgotten, and closing a pool waits for nothing.
func TestConnectionsThatCloseAreForgotten(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer server.Close()
	d := &dialed{dial: func(context.Context, string, string) (net.Conn, error) { return client, nil }, open: make(map[net.Conn]bool)}
	conn, err := d.Dial(t.Context(), "tcp", "server")
	if err != nil {
		t.Fatal(err)
	}
	d.end(func() { err = conn.Close() })
	if err != nil || len(d.open) != 0 {
		t.Errorf("got %v and %d connections, want none", err, len(d.open))
	}
}
