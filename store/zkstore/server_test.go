// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/needed"
	"github.com/asynclock/asynclock-go/internal/zkserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// servers reads where a server is from the environment. Without it the test is
// skipped, or fails where servers are required.
func servers(t testing.TB) []string {
	t.Helper()
	return strings.Split(needed.Variable(t, "ASYNCLOCK_ZOOKEEPER"), ",")
}

// newRoot is a root of the test's own.
func newRoot() string { return "/test/" + uuid.NewString() }

// open opens a store on the server that the environment names, and closes it with
// the test. Sessions outlast the tests, unless options say otherwise.
func open(t testing.TB, root string, opts ...Option) *Store {
	t.Helper()
	return openOn(t, servers(t), root, opts...)
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

// A raw is a driver's connection, to look behind a store's back.
func raw(t testing.TB, servers []string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(servers, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { // ends with the connection
		for range events {
		}
		close(closed)
	}()
	t.Cleanup(func() {
		conn.Close()
		<-closed
	})
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// join connects a client that ignores events.
func join(t testing.TB, st *Store, events func(asynclock.Event)) asynclock.Session {
	t.Helper()
	if events == nil {
		events = func(asynclock.Event) {}
	}
	s, err := st.Join(uuid.NewString(), events)
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
