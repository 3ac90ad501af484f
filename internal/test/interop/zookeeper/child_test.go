// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

// childRoot tells this program to be a holder that is to be killed, of the key
// "key" below that root.
const childRoot = "ASYNCLOCK_INTEROP_ROOT"

// playChild does a child's part, if this is one.
func playChild() {
	root := os.Getenv(childRoot)
	if root == "" {
		return
	}
	store, err := zkstore.Open(strings.Split(os.Getenv("ASYNCLOCK_ZOOKEEPER"), ","),
		zkstore.WithRoot(root), zkstore.WithTickTime(servers.Tick), zkstore.WithSessionTimeout(short))
	if err != nil {
		panic(err)
	}
	client, err := asynclock.New(store)
	if err != nil {
		panic(err)
	}
	if _, err := client.Lock(context.Background(), "key"); err != nil {
		panic(err)
	}
	javapeer.Hold()
}

// A holder in Go that is killed keeps the key for its session's timeout, and then a
// waiter in Java has it.
func TestGoHolderIsKilled(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java := openPeer(t, root, long)
	kill := javapeer.StartHolder(t, childRoot, root)
	if got := java.Do("acquirefor", "key", 500); got != "false" {
		t.Errorf("acquire in Java while Go holds: got %s, want false", got)
	}
	waiting := java.Begin("main", "acquire", "key")
	kill()
	start := time.Now()
	java.Succeeds(waiting)
	if took := time.Since(start); took > short+10*time.Second {
		t.Errorf("Java had the key after %v, want it soon after the session timeout of %v", took, short)
	}
	java.Do("release", "key")
}
