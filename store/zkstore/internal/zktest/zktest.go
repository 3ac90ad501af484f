// SPDX-License-Identifier: Apache-2.0

// Package zktest is what tests of ZooKeeper need: where a server is, and a connection
// to look behind a store's back.
package zktest

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Servers reads from the environment where a server is. Without it the test is left
// out.
func Servers(t testing.TB) []string {
	t.Helper()
	return strings.Split(kit.Require(t, "ASYNCLOCK_ZOOKEEPER"), ",")
}

// Connect makes a driver's connection, which ends with the test.
func Connect(t testing.TB, servers []string) *zk.Conn {
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

// silent is what a driver's connection logs to: nobody.
type silent struct{}

func (silent) Printf(string, ...any) {}
