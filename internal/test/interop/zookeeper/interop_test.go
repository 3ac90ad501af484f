// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

func TestMain(m *testing.M) {
	playChild()
	kit.InParallel(16) // most wait for a session's end
	goleak.VerifyTestMain(processes.Tests(m))
}

const (
	// patience is how long a test waits for what has to happen.
	patience = javapeer.Patience
	// long is the session timeout of what must not end while a test runs.
	long = time.Minute
	// short is that of what has to end.
	short = 4 * time.Second
)

// newRoot is a root of the test's own.
func newRoot() string { return "/interop/" + uuid.NewString() }

// zooKeepers are the servers of the environment.
func zooKeepers(t *testing.T) []string {
	t.Helper()
	return strings.Split(kit.Require(t, "ASYNCLOCK_ZOOKEEPER"), ",")
}

// connect makes a driver's connection, to look behind the stores' backs.
func connect(t *testing.T) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(zooKeepers(t), long, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		for range events { // until the driver has closed it
		}
	})
	return conn
}

func goClient(t *testing.T, root string, opts ...zkstore.Option) *asynclock.Client {
	t.Helper()
	opts = append([]zkstore.Option{zkstore.WithRoot(root), zkstore.WithTickTime(servers.Tick), zkstore.WithSessionTimeout(long)}, opts...)
	store, err := zkstore.Open(zooKeepers(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	client, err := asynclock.New(store, asynclock.WithTTL(long), asynclock.WithDescription("a Go service"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.Close(ctx) // whatever the test has left
	})
	return client
}

func lock(t *testing.T, c *asynclock.Client, key string) *asynclock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := c.Lock(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func unlock(t *testing.T, lease *asynclock.Lease) {
	t.Helper()
	if err := lease.Unlock(t.Context()); err != nil {
		t.Errorf("Unlock: got %v, want no error", err)
	}
}

func claim(t *testing.T, pending <-chan asynclock.Result) *asynclock.Lease {
	t.Helper()
	select {
	case got := <-pending:
		lease, err := got.Lease()
		if err != nil {
			t.Fatal(err)
		}
		return lease
	case <-time.After(patience):
		t.Fatalf("Go has not got the key in %v", patience)
		return nil
	}
}

func wantWaiters(t *testing.T, c *asynclock.Client, key string, n int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		info, err := c.Inspect(t.Context(), key)
		if err == nil && info.Held && info.Waiters == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waiters: got %+v, %v, want %d", info, err, n)
		}
	}
}

// The registry and Go exclude each other, both ways.
func TestExclusion(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root)
	for _, key := range []string{
		"key", "a/deeper/key", "ein Schlüssel: 100%",
		"lock-1", "block-42", "blocks/block-42", "lock-0000000001", // which look like nodes
	} {
		lease := lock(t, client, key)
		if got := java.Do("trylockfor", key, 1500); got != "false" {
			t.Errorf("tryLock in Java of %q, which Go holds: got %s, want false", key, got)
		}
		unlock(t, lease)
		java.Do("lock", key)
		var held *asynclock.HeldError
		if _, err := client.TryLock(t.Context(), key); !errors.As(err, &held) {
			t.Errorf("TryLock in Go of %q, which Java holds: got %v, want ErrHeld", key, err)
		} else if held.Holder == "" || held.Token == 0 {
			t.Errorf("TryLock in Go: got %+v, want Java's address and the token of its node", *held)
		}
		java.Do("unlock", key)
		again := lock(t, client, key)
		if again.Token() <= lease.Token() {
			t.Errorf("token after a tenure of Java: got %d after %d, want more", again.Token(), lease.Token())
		}
		unlock(t, again)
	}
}

// Java can't lock a key that Go spells differently or refuses, except a key whose path is
// that of a node of another key's lock.
func TestWhatJavaCantHave(t *testing.T) {
	t.Parallel()
	java := openPeer(t, newRoot(), long)
	for _, key := range []string{"/", "a/", "/a", "a//b", ".", "a/../b", "\x01", "\x1f", "\x7f", "\u009f", "\ue000", "\uf8ff", "\ufff0", "🔒"} {
		if value, exception := java.Await(java.Begin("main", "lock", key)); exception == "" {
			t.Errorf("lock in Java of %q: got %q, want an exception", key, value)
		}
	}
}

// To Curator, every child of a lock is somebody who waits for it, or has it, and so
// are the locks of keys below. It is not so in Go.
func TestJavaCountsKeysBelow(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root)
	below := lock(t, client, "key/0")
	if got := java.Do("acquirefor", "key", 500); got != "false" {
		t.Errorf("acquire in Java of a key with a key below it that comes first: got %s, want false", got)
	}
	above, err := client.TryLock(t.Context(), "key")
	if err != nil {
		t.Fatalf("TryLock in Go of the same: got %v, want it free", err)
	}
	unlock(t, above)
	unlock(t, below)
	java.Do("acquire", "key") // when the server has removed what is empty
	java.Do("release", "key")
}

// A file that both raise loses nothing.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	const rounds = 60
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root)
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := java.Begin("one", "bump", "counter", file, rounds)
	two := java.Begin("two", "bump", "counter", file, rounds)
	read := func() int {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(string(text))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range rounds {
		lease := lock(t, client, "counter")
		if err := os.WriteFile(file, []byte(strconv.Itoa(read()+1)), 0o600); err != nil {
			t.Fatal(err)
		}
		unlock(t, lease)
	}
	java.Succeeds(one)
	java.Succeeds(two)
	if got := read(); got != 3*rounds {
		t.Errorf("counter: got %d, want %d", got, 3*rounds)
	}
}

// Both languages stand in one queue, and are served in its order.
func TestOneQueue(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, first, second, third := openPeer(t, root, long), goClient(t, root), goClient(t, root), goClient(t, root)
	lease := lock(t, first, "key")
	javaOne := java.Begin("one", "lock", "key")
	wantWaiters(t, first, "key", 1)
	pending := second.LockChan(t.Context(), "key")
	wantWaiters(t, first, "key", 2)
	javaTwo := java.Begin("two", "acquire", "key") // by Curator's own mutex, not through the registry
	wantWaiters(t, first, "key", 3)
	last := third.LockChan(t.Context(), "key")
	wantWaiters(t, first, "key", 4)
	unlock(t, lease)
	java.Succeeds(javaOne)
	java.Succeeds(java.Begin("one", "unlock", "key"))
	next := claim(t, pending)
	if next.Token() <= lease.Token() {
		t.Errorf("token: got %d after %d, want more", next.Token(), lease.Token())
	}
	unlock(t, next)
	java.Succeeds(javaTwo)
	if len(last) > 0 {
		t.Error("who came last is served before who came before, want the queue's order")
	}
	java.Succeeds(java.Begin("two", "release", "key"))
	unlock(t, claim(t, last))
}

// A holder in Java that is killed keeps the key for its session's timeout.
func TestJavaHolderIsKilled(t *testing.T) {
	t.Parallel()
	root := newRoot()
	process := javapeer.Start(t, jar(t))
	java, client := openIn(t, process, root, short), goClient(t, root)
	java.Do("lock", "key")
	pending := client.LockChan(t.Context(), "key")
	wantWaiters(t, client, "key", 1)
	process.Kill()
	start := time.Now()
	unlock(t, claim(t, pending))
	if took := time.Since(start); took > short+10*time.Second {
		t.Errorf("Go had the key after %v, want it soon after the session timeout of %v", took, short)
	}
}

// A session of Java's that ends lets Go in, and Java's late unlock does Go
// no harm.
func TestJavaSessionEnds(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, short), goClient(t, root)
	java.Do("lock", "key")
	pending := client.LockChan(t.Context(), "key")
	wantWaiters(t, client, "key", 1)
	java.Do("expire", "key")
	lease := claim(t, pending)
	_, _ = java.Await(java.Begin("main", "unlock", "key")) // whatever it says
	if got := java.Do("acquirefor", "key", 1500); got != "false" {
		t.Errorf("acquire in Java of what Go holds: got %s, want false", got)
	}
	if err := lease.Renew(t.Context(), long); err != nil {
		t.Errorf("Renew after Java's late unlock: got %v, want no error", err)
	}
	unlock(t, lease)
}

// Curator's participants are all of the queue, in its order.
func TestParticipants(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client, other := openPeer(t, root, long), goClient(t, root), goClient(t, root)
	lease := lock(t, client, "key")
	pending := other.LockChan(t.Context(), "key")
	wantWaiters(t, client, "key", 1)
	waiting := java.Begin("one", "acquire", "key")
	wantWaiters(t, client, "key", 2)
	nodes := strings.Fields(java.Do("participants", "key"))
	if len(nodes) != 3 || !strings.HasPrefix(nodes[0], root+"/key/_c_") {
		t.Fatalf("participants: got %q, want three nodes", nodes)
	}
	conn := connect(t)
	var holders []string
	for _, path := range nodes {
		data, _, err := conn.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		holders = append(holders, string(data))
	}
	if holders[0] != "a Go service" || holders[1] != "a Go service" || holders[2] == "a Go service" {
		t.Errorf("participants' data: got %q, want Go, Go, and Java's address", holders)
	}
	unlock(t, lease)
	unlock(t, claim(t, pending))
	java.Succeeds(waiting)
	java.Succeeds(java.Begin("one", "release", "key"))
}

// Curator's Revoker asks a holder in Go to give up, if that has agreed to it.
func TestJavaRevokesGo(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root, zkstore.WithRevocation())
	stubborn := goClient(t, root)
	lease, other := lock(t, client, "key"), lock(t, stubborn, "other")
	for _, key := range []string{"key", "other"} {
		java.Do("revoke", key, java.Do("participants", key))
	}
	select {
	case <-lease.Done():
	case <-time.After(patience):
		t.Fatal("the lease goes on, want it revoked")
	}
	if !errors.Is(lease.Err(), asynclock.ErrForced) {
		t.Errorf("the lease: got %v, want ErrForced", lease.Err())
	}
	if got := java.Do("acquirefor", "key", 500); got != "false" {
		t.Errorf("acquire in Java before the holder has unlocked: got %s, want false", got)
	}
	_ = lease.Unlock(t.Context()) // which has noticed
	java.Do("acquire", "key")
	java.Do("release", "key")
	if err := other.Renew(t.Context(), long); err != nil || other.Err() != nil {
		t.Errorf("a lease whose store was not told to listen: got %v and %v, want it to go on", err, other.Err())
	}
	unlock(t, other)
}

// Force takes a key from Java, which is not told.
func TestForceTakesFromJava(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root)
	java.Do("lock", "key")
	if held, err := client.ForceUnlock(t.Context(), "key", 0); !held || err != nil {
		t.Errorf("ForceUnlock: got %v, %v, want true", held, err)
	}
	lease := lock(t, client, "key")
	java.Do("unlock", "key") // without an exception: that is how Curator is
	if err := lease.Renew(t.Context(), long); err != nil {
		t.Errorf("Renew after Java's late unlock: got %v, want no error", err)
	}
	unlock(t, lease)
}

// Locks in Java belong to threads, whoever they share the key with.
func TestJavaThreads(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root)
	for range 2 {
		java.Do("lock", "key") // the second time it is re-entered
	}
	if _, exception := java.Await(java.Begin("other", "unlock", "key")); exception == "" {
		t.Error("unlock by another thread of Java: got success, want an exception")
	}
	java.Do("unlock", "key")
	if _, err := client.TryLock(t.Context(), "key"); !errors.Is(err, asynclock.ErrHeld) {
		t.Errorf("TryLock while Java has unlocked once of twice: got %v, want ErrHeld", err)
	}
	java.Do("unlock", "key")
	unlock(t, lock(t, client, "key"))
}
