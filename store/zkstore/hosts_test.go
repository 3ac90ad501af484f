// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// Names are looked up by whatever makes the connection, each time.
func TestServersAreConnectedByName(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(zktest.Servers(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	name := "a-name.invalid:" + port // nobody knows it
	w := newWire(t)
	var mu sync.Mutex
	var dialed []string
	st := openOn(t, []string{name}, newRoot(), WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		dialed = append(dialed, address)
		mu.Unlock()
		return w.dial(ctx, network, zktest.Servers(t)[0])
	}))
	c := locks(t, st)
	unlock(t, lock(t, c, "key"))
	w.cut()
	w.mend()
	unlock(t, lock(t, c, "key"))
	mu.Lock()
	defer mu.Unlock()
	if len(dialed) < 2 || slices.ContainsFunc(dialed, func(address string) bool { return address != name }) {
		t.Errorf("connected to %q, want %q each time", dialed, name)
	}
}

// All servers have their turn, and there is a pause when none of them was any good.
func TestServersHaveTheirTurn(t *testing.T) {
	h := new(hosts)
	if err := h.Init([]string{"a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		server string
		pause  bool
		then   func()
	}{
		{"a", false, nil},
		{"b", false, nil},
		{"c", false, nil},
		{"a", true, nil},
		{"b", false, h.Connected},
		{"c", false, nil},
		{"a", false, nil},
		{"b", true, nil},
		{"c", false, nil},
		{"a", false, h.disown}, // another server's turn comes at once
		{"b", false, nil},
		{"c", false, nil},
		{"a", false, nil},
		{"b", true, nil},
		{"c", false, nil},
		{"a", false, h.disown}, // but not when that was of no use
		{"b", true, h.Connected},
		{"c", false, nil},
		{"a", false, h.disown},
		{"b", false, h.Connected},
	}
	for i, want := range steps {
		if got, pause := h.Next(); got != want.server || pause != want.pause {
			t.Errorf("step %d: got %q, %v, want %q, %v", i, got, pause, want.server, want.pause)
		}
		if want.then != nil {
			want.then()
		}
	}
	if h.Len() != 3 {
		t.Errorf("Len: got %d, want 3", h.Len())
	}
}

func TestServersThatAreNone(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"", ":2181", "zk1:2181/chroot", "zk1:2181,zk2:2181", "zk1,zk2", "::1", "zk1:port", "zk1:70000", "zk1:1:2"} {
		if _, err := Open([]string{"127.0.0.1:1", server}); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Open with the server %q: got %v, want ErrInvalidOption", server, err)
		}
	}
	if err := checkServers([]string{"zk1", "zk2:2182", "[::1]:2181"}); err != nil {
		t.Errorf("servers as they should be: got %v, want no error", err)
	}
}

// FuzzServers: whatever is taken for a server can be split again.
func FuzzServers(f *testing.F) {
	for _, server := range []string{"zk1:2181", "zk1", "[::1]:2181", "::1", "zk1:2181/a", "a,b:1"} {
		f.Add(server)
	}
	f.Fuzz(func(t *testing.T, server string) {
		err := checkServers([]string{server})
		if err != nil && !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%q: got %v, want ErrInvalidOption", server, err)
		}
	})
}
