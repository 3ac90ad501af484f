// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/springredis"
)

func TestMain(m *testing.M) {
	playChild()
	kit.InParallel(16) // most wait for a TTL's end
	goleak.VerifyTestMain(processes.Tests(m))
}

// lines are the lines of releases that the tests play against, as the profiles of
// pom.xml name them: every day the newest, and the oldest of the channel's other kind.
var lines = func() []string {
	if kit.Nightly() {
		return []string{"7.1", "7.0", "6.5", "6.5-old"}
	}
	return []string{"7.1", "6.5-old"}
}()

var modes = []springredis.LockType{springredis.SpinLock, springredis.PubSubLock}

const (
	// long is the TTL of what must not expire while a test runs. With it a waiter
	// that missed a message would be told only by a timer: in Java after long, in
	// Go after a second.
	long = time.Minute
	// short is the TTL of what has to expire: long enough to be renewed by processes
	// that a busy machine lets stand still for a second.
	short = 2 * time.Second
	// patience is how long a test waits for what has to happen.
	patience = javapeer.Patience
)

// onEach runs a test against every line of releases, in both modes, under a
// registry key of its own, several at once.
func onEach(t *testing.T, test func(*testing.T, setup)) {
	t.Helper()
	t.Parallel()
	onEachAlone(t, func(t *testing.T, s setup) {
		t.Parallel()
		test(t, s)
	})
}

// onEachAlone is onEach, one after the other.
func onEachAlone(t *testing.T, test func(*testing.T, setup)) {
	t.Helper()
	kit.Require(t, "ASYNCLOCK_SPRING")
	for _, line := range lines {
		for _, mode := range modes {
			t.Run(line+"/"+mode.String(), func(t *testing.T) {
				test(t, newSetup(line, mode))
			})
		}
	}
}

// newSetup is one that nobody else has.
func newSetup(line string, mode springredis.LockType) setup {
	return setup{line: line, registry: "interop " + uuid.NewString(), mode: mode, ttl: long}
}

// goClient makes a client of the same registry key and mode.
func goClient(t *testing.T, s setup, options ...springredis.Option) *asynclock.Client {
	t.Helper()
	options = append([]springredis.Option{springredis.WithLockType(s.mode)}, options...)
	store, err := springredis.Open(serverOption(t), s.registry, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	client, err := asynclock.New(store, asynclock.WithTTL(s.ttl))
	if err != nil {
		t.Fatal(err)
	}
	closeWithTest(t, client)
	return client
}

// closeWithTest closes a client when the test is over, also one that holds a key
// because the test has failed.
func closeWithTest(t *testing.T, c *asynclock.Client) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil && !t.Failed() {
			t.Errorf("Close: %v", err)
		}
	})
}

func lock(t *testing.T, c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := c.Lock(ctx, key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func unlock(t *testing.T, l *asynclock.Lease) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Errorf("Unlock: got %v, want no error", err)
	}
}

// wantHeld checks that Go can't have the key.
func wantHeld(t *testing.T, c *asynclock.Client, key string) {
	t.Helper()
	heldBy(t, c, key)
}

// heldBy returns what Go says of who has a key that it can't have. A busy machine's database
// may take longer than a call may last at a short TTL; then Go tries again.
func heldBy(t *testing.T, c *asynclock.Client, key string) asynclock.HeldError {
	t.Helper()
	lease, err := c.TryLock(t.Context(), key)
	for tries := 1; tries < 10 && errors.Is(err, asynclock.ErrUnreachable); tries++ {
		lease, err = c.TryLock(t.Context(), key)
	}
	var held *asynclock.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("TryLock of %q: got %v, %v; want it held", key, lease, err)
	}
	return *held
}

// wantFree checks that Go can have the key, and gives it back.
func wantFree(t *testing.T, c *asynclock.Client, key string) {
	t.Helper()
	lease, err := c.TryLock(t.Context(), key)
	if err != nil {
		t.Fatalf("TryLock of %q: got %v, want it free", key, err)
	}
	unlock(t, lease)
}

// wantRefused checks that Java can't have the key.
func wantRefused(t *testing.T, p *javapeer.Peer, key string) {
	t.Helper()
	if got := p.Do("trylock", key); got != "false" {
		t.Fatalf("tryLock of %q in Java: got %s, want false", key, got)
	}
}

// awaitJava tries in Java until it has the key, whatever its mode.
func awaitJava(t *testing.T, p *javapeer.Peer, key string) {
	t.Helper()
	for end := time.Now().Add(patience); p.Do("trylock", key) != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("Java did not get %q in %v", key, patience)
		}
	}
}

// ask sends one command about a lock's Redis key, behind both languages' backs,
// and returns the number that it answers.
func ask(t *testing.T, s setup, command, key string, args ...string) int64 {
	t.Helper()
	option := serverOption(t)
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	n, err := client.Do(t.Context(), client.B().Arbitrary(command).Keys(s.registry+":"+key).Args(args...).Build()).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pttl is what remains of the TTL.
func pttl(t *testing.T, s setup, key string) time.Duration {
	t.Helper()
	return time.Duration(ask(t, s, "PTTL", key)) * time.Millisecond
}

func shorten(t *testing.T, s setup, key string, ttl time.Duration) {
	t.Helper()
	ask(t, s, "PEXPIRE", key, strconv.FormatInt(ttl.Milliseconds(), 10))
}

func remove(t *testing.T, s setup, key string) {
	t.Helper()
	if ask(t, s, "DEL", key) != 1 {
		t.Fatalf("%q was not there", key)
	}
}
