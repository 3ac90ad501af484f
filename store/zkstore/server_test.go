// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/kit/zktest"
	"github.com/asynclock/asynclock-go/internal/test/servers/zkserver"
	"github.com/asynclock/asynclock-go/store"
)

// newRoot is a root of the test's own.
func newRoot() string { return "/test/" + uuid.NewString() }

// open opens a store on the server that the environment names, and closes it with
// the test. Sessions outlast the tests, unless options say otherwise.
func open(t testing.TB, root string, opts ...Option) *Store {
	t.Helper()
	return openOn(t, zktest.Servers(t), root, opts...)
}

func openOn(t testing.TB, servers []string, root string, opts ...Option) *Store {
	t.Helper()
	opts = append([]Option{WithRoot(root), WithTickTime(zkserver.Tick), WithSessionTimeout(2 * time.Minute), WithShortTTLs()}, opts...)
	st, err := Open(servers, opts...)
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

// eventually waits until what is true, which takes long only if it never is.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testPatience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
