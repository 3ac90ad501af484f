// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/childproc"
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
		zkstore.WithRoot(root), zkstore.WithTickTime(tick), zkstore.WithSessionTimeout(short))
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
	fmt.Println("held")
	time.Sleep(patience)
	os.Exit(0)
}

// A holder in Go that is killed keeps the key for its session's timeout, and then a
// waiter in Java has it.
func TestGoHolderIsKilled(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java := startPeer(t, root, long)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root)
	childproc.Prepare(cmd)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() {
		_ = childproc.Kill(cmd.Process)
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "held\n" {
		t.Fatalf("the child says %q, %v; want that it holds the key", line, err)
	}
	if got := java.do("acquirefor", "key", 500); got != "false" {
		t.Errorf("acquire in Java while Go holds: got %s, want false", got)
	}
	waiting := java.begin("main", "acquire", "key")
	kill()
	start := time.Now()
	java.succeeds(waiting)
	if took := time.Since(start); took > short+10*time.Second {
		t.Errorf("Java had the key after %v, want it soon after the session timeout of %v", took, short)
	}
	java.do("release", "key")
}
