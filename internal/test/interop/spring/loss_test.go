// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A victim is a holder in Java, and a waiter in Go.
type victim struct {
	name   string
	java   *javapeer.Peer
	client *asynclock.Client
	began  time.Time
	future <-chan asynclock.Result
}

// A holder in Java that is killed keeps the key for its TTL, and then a waiter in
// Go has it. One of each kind, in Redis and in databases, dies with the process.
func TestJavaHolderIsKilled(t *testing.T) {
	kit.Require(t, "ASYNCLOCK_SPRING")
	t.Parallel()
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			process := javapeer.Start(t, jar(t, line))
			victims := findVictims(t, line, process)
			for _, v := range victims {
				v.began = time.Now()
				v.java.Do("lock", "key")
				v.future = v.client.LockChan(t.Context(), "key")
			}
			process.Kill()
			for _, v := range victims {
				t.Run(v.name, func(t *testing.T) {
					lease, err := (<-v.future).Lease()
					if err != nil {
						t.Fatal(err)
					}
					wantAfterTTL(t, v.began)
					unlock(t, lease)
				})
			}
		})
	}
}

// findVictims makes a registry in the process for each way to keep locks there is.
func findVictims(t *testing.T, line string, process *javapeer.Process) (victims []*victim) {
	t.Helper()
	for _, mode := range modes {
		s := newSetup(line, mode)
		s.ttl = short
		victims = append(victims, &victim{name: mode.String(), java: s.open(t, process), client: goClient(t, s)})
	}
	for _, p := range jdbcPlaces {
		if p.line == line {
			b := newTable(t, p.kind, p.release)
			b.ttl = short
			victims = append(victims, &victim{name: p.kind.name, java: warm(b.open(t, process)), client: b.client(t)})
		}
	}
	return victims
}

// A holder in Go that is killed likewise.
func TestGoHolderIsKilled(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		java := openPeer(t, s)
		s.ttl = short
		killGo(t, java, s.part(t, "key"))
	})
}

func killGo(t *testing.T, java *javapeer.Peer, p part) {
	t.Helper()
	kill := startChild(t, p)
	wantRefused(t, java, p.Key)
	kill()
	began := time.Now()
	awaitJava(t, java, p.Key)
	if got := time.Since(began); got > short+5*time.Second {
		t.Errorf("Java had the key after %v, want it soon after the TTL of %v", got, short)
	}
	java.Do("unlock", p.Key)
}

// wantAfterTTL checks that a key passed on soon after the TTL of who had it.
func wantAfterTTL(t *testing.T, began time.Time) {
	t.Helper()
	if got := time.Since(began); got < short-10*time.Millisecond || got > short+5*time.Second {
		t.Errorf("the key passed on after %v, want soon after the TTL of %v", got, short)
	}
}

// A holder in Java that takes too long learns of it when it unlocks, and does Go's
// lease no harm.
func TestExpiryUnderJava(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		s.ttl = short
		java := openPeer(t, s)
		s.ttl = long
		expireUnderJava(t, java, goClient(t, s))
	})
}

func expireUnderJava(t *testing.T, java *javapeer.Peer, client *asynclock.Client) {
	t.Helper()
	before := lock(t, client, "key")
	unlock(t, before)

	began := time.Now()
	java.Do("lock", "key")
	lease := lock(t, client, "key") // the TTL ends the wait
	wantAfterTTL(t, began)
	if lease.Token() <= before.Token() {
		t.Errorf("token after a tenure of Java: got %d, want more than %d", lease.Token(), before.Token())
	}
	if got := java.Fails("unlock", "key"); got != "ConcurrentModificationException" {
		t.Errorf("unlock in Java after the key was lost: got %q, want ConcurrentModificationException", got)
	}
	wantRefused(t, java, "key")
	if err := lease.Renew(t.Context(), long); err != nil {
		t.Errorf("Renew in Go after Java's late unlock: got %v, want no error", err)
	}
	unlock(t, lease)
}

// A holder in Go that does not renew is told before its TTL ends, and its late
// unlock does Java's lock no harm.
func TestExpiryUnderGo(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		java := openPeer(t, s)
		s.ttl = short
		expireUnderGo(t, java, goClient(t, s))
	})
}

func expireUnderGo(t *testing.T, java *javapeer.Peer, client *asynclock.Client) {
	t.Helper()
	lease := lock(t, client, "key", asynclock.WithRenewal(false))
	awaitJava(t, java, "key")
	select {
	case <-lease.Done():
	default:
		t.Error("Java has the key, and the lease in Go has not ended")
	}
	if err := context.Cause(lease.Context()); !errors.Is(err, asynclock.ErrExpired) {
		t.Errorf("why the lease ended: got %v, want ErrExpired", err)
	}
	if err := lease.Unlock(t.Context()); !errors.Is(err, asynclock.ErrExpired) {
		t.Errorf("Unlock after the key was lost: got %v, want ErrExpired", err)
	}
	wantHeld(t, client, "key")
	java.Do("unlock", "key")
}

// Go may lose a key to Java before its TTL ends, because of an old Java release or a person
// at a prompt. The next renewal notices.
func TestJavaHoldsWhatGoHeld(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		replaceGo(t, openPeer(t, s), goClient(t, s), func() { remove(t, s, "key") })
	})
}

func replaceGo(t *testing.T, java *javapeer.Peer, client *asynclock.Client, remove func()) {
	t.Helper()
	lease := lock(t, client, "key")
	remove()
	java.Do("lock", "key")
	if err := lease.Renew(t.Context(), long); !errors.Is(err, asynclock.ErrStolen) {
		t.Errorf("Renew: got %v, want ErrStolen", err)
	}
	if err := lease.Err(); !errors.Is(err, asynclock.ErrStolen) {
		t.Errorf("Err: got %v, want ErrStolen", err)
	}
	java.Do("unlock", "key")
}

// Force takes a key from Java, which learns of it at unlock.
func TestForceTakesFromJava(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) { forceJava(t, openPeer(t, s), goClient(t, s)) })
}

func forceJava(t *testing.T, java *javapeer.Peer, client *asynclock.Client) {
	t.Helper()
	java.Do("lock", "key")
	if held, err := client.ForceUnlock(t.Context(), "key", 0); !held || err != nil {
		t.Errorf("ForceUnlock: got %v, %v; want true", held, err)
	}
	wantFree(t, client, "key")
	if got := java.Fails("unlock", "key"); got != "ConcurrentModificationException" {
		t.Errorf("unlock in Java after that: got %q, want ConcurrentModificationException", got)
	}
}
