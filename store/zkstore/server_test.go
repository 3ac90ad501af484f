// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// newRoot is a root of the test's own. It has no parent that tests share: the first one to make the
// parent might keep the others out by its access control list.
func newRoot() string { return "/test-" + uuid.NewString() }

// open opens a store on the server that the environment names, and closes it with
// the test. Sessions outlast the tests, unless options say otherwise.
func open(t testing.TB, root string, opts ...Option) *Store {
	t.Helper()
	return openOn(t, zktest.Servers(t), root, opts...)
}

func openOn(t testing.TB, addrs []string, root string, opts ...Option) *Store {
	t.Helper()
	opts = append([]Option{WithoutLogger(), WithRoot(root), WithTickTime(servers.Tick), WithSessionTimeout(2 * time.Minute), WithShortTTLs()}, opts...)
	st, err := Open(addrs, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// join connects a client that ignores events.
func join(t testing.TB, st *Store, events func(store.Event)) store.Session {
	t.Helper()
	if events == nil {
		events = func(store.Event) {}
	}
	s, err := st.Open(uuid.NewString(), events)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
