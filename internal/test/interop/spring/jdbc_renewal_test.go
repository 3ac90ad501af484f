// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
)

// A key that is renewed outlasts its TTL. Java does not renew by itself here.
func TestJDBCRenewal(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		b.ttl = 2 * short
		b.lease = b.ttl + short/2 // a quarter of it is what a renewal may take
		java, client := b.openPeer(t), b.client(t)
		b.lease = long
		other := b.client(t) // which gives a busy server twice the time for an answer

		java.Do("lock", "java")
		lease := lock(t, client, "go")
		for began := time.Now(); time.Since(began) < 2*b.ttl; time.Sleep(short / 10) {
			java.Do("renew", "java")
			wantHeld(t, other, "java")
			wantRefused(t, java, "go")
		}
		java.Do("unlock", "java")
		unlock(t, lease)
		wantFree(t, other, "java")
		awaitJava(t, java, "go")
		java.Do("unlock", "go")
	})
}

// renewByHand: renewLock and Lease.Renew set the TTL that the other side sees, also
// one that is not the TTL of Java's repositories.
func renewByHand(t *testing.T, b table, java *javapeer.Peer, client *asynclock.Client) {
	t.Helper()
	java.Do("lock", "java")
	b.end(t, 10*time.Second)
	if got := heldBy(t, client, "java").Remaining; got > 10*time.Second {
		t.Fatalf("what remains of 10 s: got %v", got)
	}
	java.Do("renew", "java")
	if got := heldBy(t, client, "java").Remaining; got <= 10*time.Second || got > long {
		t.Errorf("what remains after renewLock: got %v, want nearly %v", got, long)
	}
	java.Do("unlock", "java")

	lease := lock(t, client, "go")
	if err := lease.Renew(t.Context(), 2*long); err != nil {
		t.Fatal(err)
	}
	if got := heldBy(t, client, "go").Remaining; got <= long || got > 2*long {
		t.Errorf("what remains after Renew: got %v, want nearly %v", got, 2*long)
	}
	if got := java.Fails("renew", "go"); got != "IllegalMonitorStateException" {
		t.Errorf("renewLock of what Go holds: got %q, want IllegalMonitorStateException", got)
	}
	unlock(t, lease)
}

// renewTooLate: after its TTL, while nobody has taken the key, Java renews, and Go
// sees a holder again. Go never does so.
func renewTooLate(t *testing.T, b table, java *javapeer.Peer, client *asynclock.Client) {
	t.Helper()
	java.Do("lock", "java")
	b.end(t, -time.Second)
	if info, err := client.Inspect(t.Context(), "java"); info.Held || err != nil {
		t.Fatalf("after the TTL: got %+v, %v; want nobody", info, err)
	}
	java.Do("renew", "java")
	wantHeld(t, client, "java")
	java.Do("unlock", "java")

	lease := lock(t, client, "go", asynclock.WithRenewal(false))
	b.end(t, -time.Second)
	if err := lease.Renew(t.Context(), long); !errors.Is(err, asynclock.ErrExpired) {
		t.Errorf("Renew after the TTL: got %v, want ErrExpired", err)
	}
	awaitJava(t, java, "go")
	java.Do("unlock", "go")
}
