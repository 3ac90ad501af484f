// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// Both languages raise a number in a file, in two steps. Without the lock most of
// the increments would be lost. It runs alone, since it waits for nothing: others
// would find both processors and the server busy.
func TestNoIncrementIsLost(t *testing.T) {
	onEachAlone(t, func(t *testing.T, s setup) {
		raise(t, openPeer(t, s), 500, func() *asynclock.Client {
			return goClient(t, s, springredis.WithPollInterval(2*time.Millisecond))
		})
	})
}

// raise has two threads of Java and two clients of Go raise one number so many
// times each, and checks that no increment is lost.
func raise(t *testing.T, java *javapeer.Peer, times int, newClient func() *asynclock.Client) {
	t.Helper()
	const each = 2
	java.Do("idle", "any", 2)
	file := filepath.Join(t.TempDir(), "counter")
	write(t, file, 0)

	began := time.Now()
	var inJava []<-chan string
	for i := range each {
		inJava = append(inJava, java.Begin(strconv.Itoa(i), "bump", "counter", file, times))
	}
	var inGo sync.WaitGroup
	var last, turns atomic.Int64 // what Go wrote last, and how often that was not what it found
	for range each {
		client := newClient()
		inGo.Go(func() { bump(t, client, file, times, &last, &turns) })
	}
	inGo.Wait()
	for _, answer := range inJava {
		if value, exception := java.Await(answer); exception != "" {
			t.Errorf("in Java: got %s, want success", value)
		}
	}
	if got, want := read(t, file), 2*each*times; got != want {
		t.Errorf("the number after all increments: got %d, want %d", got, want)
	}
	if turns.Load() == 0 {
		t.Error("Java never had the key between two increments of Go: nothing was tried")
	}
	t.Logf("%d increments in %v; Go took over from Java %d times", 2*each*times, time.Since(began).Round(time.Millisecond), turns.Load())
}

func bump(t *testing.T, client *asynclock.Client, file string, times int, last, turns *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range times {
		lease, err := client.Lock(ctx, "counter")
		if err != nil {
			t.Errorf("in Go: %v", err)
			return
		}
		n := read(t, file)
		if int64(n) != last.Load() {
			turns.Add(1)
		}
		write(t, file, n+1)
		last.Store(int64(n) + 1)
		unlock(t, lease)
	}
}

func read(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	n, bad := strconv.Atoi(string(text))
	if err != nil || bad != nil {
		t.Errorf("the number: got %q, %v; want digits: somebody else is writing them", text, err)
	}
	return n
}

func write(t *testing.T, file string, n int) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strconv.Itoa(n)), 0o600); err != nil {
		t.Error(err)
	}
}

// Keys mean the same in both languages, whatever is in them.
func TestKeysMeanTheSame(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		s.registry = "übung: [" + s.registry + "] {a}*?"
		if s.mode == springredis.PubSubLock {
			s.registry = strings.Trim(s.registry, "*?") // docs/stores/spring.md: Java takes glob characters for a pattern
			s.registry = strings.NewReplacer("[", "(", "]", ")").Replace(s.registry)
		}
		share(t, openPeer(t, s), goClient(t, s), "Spring RedisLockRegistry ")
	})
}

// keys are some that may be written in more than one way.
var keys = []string{
	"order", "order:42", ":", "a:b:c", "two words", " ", "größe", "注文:42", "🔒", "e\u0301", "{tag}key", "a}b{c", "*", "\"'\\", "%41", "a\tb\nc", "\x00",
}

// share has each key go from one language to the other and back, both ways, and
// checks what Go says of a holder in Java.
func share(t *testing.T, java *javapeer.Peer, client *asynclock.Client, holder string, more ...string) {
	t.Helper()
	for _, key := range slices.Concat(keys, more) {
		lease := lock(t, client, key)
		wantRefused(t, java, key)
		waiter := java.Begin("waiter", "lock", key)
		unlock(t, lease)
		if value, exception := java.Await(waiter); exception != "" {
			t.Fatalf("lock of %q in Java: got %s, want it", key, value)
		}
		held := heldBy(t, client, key)
		if !strings.HasPrefix(held.Holder, holder) || held.Token != 0 || held.Remaining <= 0 || held.Remaining > long {
			t.Errorf("what Go says of the holder of %q: got %+v, want a registry, no token, and at most %v", key, held, long)
		}
		future := client.LockChan(t.Context(), key)
		if value, exception := java.Await(java.Begin("waiter", "unlock", key)); exception != "" {
			t.Errorf("unlock of %q in Java: got %s, want success", key, value)
		}
		lease, err := (<-future).Lease()
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, lease)
	}
}

// A thread of Java that has the key takes it again, and Go gets it only when all
// of these are over.
func TestReentryInJava(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		reenter(t, openPeer(t, s), goClient(t, s), "IllegalStateException")
	})
}

// reenter has Java lock a key thrice and unlock it as often, and once more, which
// throws.
func reenter(t *testing.T, java *javapeer.Peer, client *asynclock.Client, thrown string) {
	t.Helper()
	for range 3 {
		java.Do("lock", "key")
	}
	for range 2 {
		java.Do("unlock", "key")
		wantHeld(t, client, "key")
	}
	java.Do("unlock", "key")
	wantFree(t, client, "key")
	if got := java.Fails("unlock", "key"); got != thrown {
		t.Errorf("one unlock too many in Java: got %q, want %s", got, thrown)
	}
}
