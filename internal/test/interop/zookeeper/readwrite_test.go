// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

// withReaders gives readers to all keys.
func withReaders() zkstore.Option {
	return zkstore.WithReadWriteKeys(func(string) bool { return true })
}

func rlock(t *testing.T, c *asynclock.Client, key string) *asynclock.Lease {
	t.Helper()
	return claim(t, c.RLockChan(t.Context(), key))
}

// wantHeld checks that a try is refused.
func wantHeld(t *testing.T, what string, try func() (*asynclock.Lease, error)) {
	t.Helper()
	if _, err := try(); !errors.Is(err, asynclock.ErrHeld) {
		t.Errorf("%s: got %v, want ErrHeld", what, err)
	}
}

// Readers of both languages hold a key together, and writers of both wait for all of them.
func TestReadersAreTogether(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client, other := openPeer(t, root, long), goClient(t, root, withReaders()), goClient(t, root, withReaders())
	first := rlock(t, client, "key")
	java.Do("read", "key")
	last := rlock(t, other, "key")
	info, err := client.Inspect(t.Context(), "key")
	if err != nil || info.Mode != asynclock.Shared || len(info.Holders) != 3 || info.Waiters != 0 {
		t.Errorf("Inspect: got %+v, %v, want three readers", info, err)
	}
	if got := strings.Fields(java.Do("readers", "key")); len(got) != 3 {
		t.Errorf("readers in Java: got %q, want three", got)
	}
	if got := java.Begin("writer", "writefor", "key", 300); java.Succeeds(got) != "false" {
		t.Error("write in Java beside readers: got true, want false")
	}
	wantHeld(t, "TryLock beside readers", func() (*asynclock.Lease, error) { return client.TryLock(t.Context(), "key") })
	unlock(t, first)
	unlock(t, last)
	wantHeld(t, "TryLock beside a reader in Java", func() (*asynclock.Lease, error) { return client.TryLock(t.Context(), "key") })
	java.Do("endread", "key")
	unlock(t, lock(t, client, "key"))
	java.Do("write", "key")
	wantHeld(t, "TryLock beside a writer in Java", func() (*asynclock.Lease, error) { return client.TryLock(t.Context(), "key") })
	wantHeld(t, "TryRLock beside a writer in Java", func() (*asynclock.Lease, error) { return client.TryRLock(t.Context(), "key") })
	java.Do("endwrite", "key")
}

// A writer in Go that waits is passed by no later reader in Java.
func TestNoReaderPassesAWriterInGo(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root, withReaders())
	java.Do("read", "key")
	pending := client.LockChan(t.Context(), "key")
	wantWaiters(t, client, "key", 1)
	if got := java.Begin("late", "readfor", "key", 300); java.Succeeds(got) != "false" {
		t.Error("read in Java behind a writer that waits: got true, want false")
	}
	late := java.Begin("late", "read", "key")
	wantWaiters(t, client, "key", 2)
	java.Do("endread", "key")
	lease := claim(t, pending)
	select {
	case <-late:
		t.Error("a reader in Java is beside a writer in Go")
	default:
	}
	unlock(t, lease)
	java.Succeeds(late)
	java.Succeeds(java.Begin("late", "endread", "key"))
}

// Nor is a writer in Java that waits passed by a later reader in Go.
func TestNoReaderPassesAWriterInJava(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client, other := openPeer(t, root, long), goClient(t, root, withReaders()), goClient(t, root, withReaders())
	reader := rlock(t, client, "key")
	writing := java.Begin("main", "write", "key")
	wantWaiters(t, other, "key", 1)
	wantHeld(t, "TryRLock behind a writer that waits", func() (*asynclock.Lease, error) { return other.TryRLock(t.Context(), "key") })
	late := other.RLockChan(t.Context(), "key")
	wantWaiters(t, other, "key", 2)
	unlock(t, reader)
	java.Succeeds(writing)
	wantHeld(t, "TryRLock beside a writer", func() (*asynclock.Lease, error) { return client.TryRLock(t.Context(), "key") })
	if len(late) > 0 {
		t.Error("a reader in Go is beside a writer in Java")
	}
	java.Do("endwrite", "key")
	unlock(t, claim(t, late))
}

// A writer in Go goes on as a reader: a reader in Java comes in, and a writer in Java does not.
func TestGoReadsOn(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client := openPeer(t, root, long), goClient(t, root, withReaders())
	lease := lock(t, client, "key")
	reading := java.Begin("reader", "read", "key")
	wantWaiters(t, client, "key", 1)
	writing := java.Begin("writer", "write", "key")
	wantWaiters(t, client, "key", 2)
	rest, err := lease.Downgrade(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	java.Succeeds(reading)
	java.Succeeds(java.Begin("reader", "endread", "key"))
	wantWaiters(t, client, "key", 1)
	select {
	case <-writing:
		t.Error("a writer in Java is beside a reader in Go that was the writer")
	default:
	}
	if rest.Err() != nil || rest.Token() <= lease.Token() {
		t.Errorf("the reader: got token %d after %d, %v, want more and no error", rest.Token(), lease.Token(), rest.Err())
	}
	unlock(t, rest)
	java.Succeeds(writing)
	java.Succeeds(java.Begin("writer", "endwrite", "key"))
}

// So does a writer in Java.
func TestJavaReadsOn(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, reader, writer := openPeer(t, root, long), goClient(t, root, withReaders()), goClient(t, root, withReaders())
	java.Do("write", "key")
	reading := reader.RLockChan(t.Context(), "key")
	wantWaiters(t, reader, "key", 1)
	writing := writer.LockChan(t.Context(), "key")
	wantWaiters(t, reader, "key", 2)
	java.Do("read", "key")
	if len(reading) > 0 {
		t.Error("a reader in Go is beside a writer in Java")
	}
	java.Do("endwrite", "key")
	lease := claim(t, reading)
	unlock(t, lease)
	wantWaiters(t, reader, "key", 1)
	if len(writing) > 0 {
		t.Error("a writer in Go is beside a reader in Java that was the writer")
	}
	java.Do("endread", "key")
	if next := claim(t, writing); next.Token() <= lease.Token() {
		t.Errorf("token of the writer: got %d, want more than the reader's %d", next.Token(), lease.Token())
	}
}

// The node of a reader in Java that is killed goes with its session, and a writer in Go comes in.
func TestJavaReaderIsKilled(t *testing.T) {
	t.Parallel()
	root := newRoot()
	process := javapeer.Start(t, jar(t))
	java, client := openIn(t, process, root, short), goClient(t, root, withReaders())
	java.Do("read", "key")
	pending := client.LockChan(t.Context(), "key")
	wantWaiters(t, client, "key", 1)
	process.Kill()
	unlock(t, claim(t, pending))
}

// Curator's mutexes don't see its readers and writers on the same path, so both hold it. Go refuses to
// be the third as soon as it sees both. The holder in Go is not told.
func TestMutexesDoNotSeeWriters(t *testing.T) {
	t.Parallel()
	root := newRoot()
	java, client, other := openPeer(t, root, long), goClient(t, root, withReaders()), goClient(t, root, withReaders())
	lease := lock(t, client, "key")
	if got := java.Do("acquirefor", "key", 300); got != "true" {
		t.Errorf("acquire of a mutex in Java beside a writer in Go: got %s, but Curator let both in when this was written", got)
	}
	if err := lease.Renew(t.Context(), long); err != nil {
		t.Errorf("Renew of the writer: got %v, want no error", err)
	}
	for what, take := range map[string]func() (*asynclock.Lease, error){
		"Lock":     func() (*asynclock.Lease, error) { return other.Lock(t.Context(), "key") },
		"TryLock":  func() (*asynclock.Lease, error) { return other.TryLock(t.Context(), "key") },
		"TryRLock": func() (*asynclock.Lease, error) { return other.TryRLock(t.Context(), "key") },
	} {
		if _, err := take(); !errors.Is(err, asynclock.ErrForeignData) {
			t.Errorf("%s beside both: got %v, want ErrForeignData", what, err)
		}
	}
	java.Do("release", "key")
	unlock(t, lease)
	unlock(t, lock(t, other, "key"))
}
