// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"testing"
	"time"
)

// A key that is renewed outlasts its TTL, whoever renews it.
func TestRenewal(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		s.ttl, s.renew = short, true
		java, client := openPeer(t, s), goClient(t, s)

		java.Do("lock", "java")
		lease := lock(t, client, "go")
		for began := time.Now(); time.Since(began) < 2*short; time.Sleep(short / 10) {
			wantHeld(t, client, "java")
			wantRefused(t, java, "go")
		}
		java.Do("unlock", "java")
		unlock(t, lease)
		wantFree(t, client, "java")
		awaitJava(t, java, "go")
		java.Do("unlock", "go")
	})
}

// renewLock and Lease.Renew set the TTL that the other side sees.
func TestRenewalByHand(t *testing.T) {
	onEach(t, func(t *testing.T, s setup) {
		java, client := openPeer(t, s), goClient(t, s)
		java.Do("lock", "java")
		shorten(t, s, "java", 10*time.Second)
		java.Do("renew", "java")
		if got := pttl(t, s, "java"); got <= 10*time.Second || got > long {
			t.Errorf("TTL after renewLock: got %v, want nearly %v", got, long)
		}
		java.Do("unlock", "java")

		lease := lock(t, client, "go")
		if err := lease.Renew(t.Context(), 2*long); err != nil {
			t.Fatal(err)
		}
		if got := pttl(t, s, "go"); got <= long || got > 2*long {
			t.Errorf("TTL after Renew: got %v, want nearly %v", got, 2*long)
		}
		if got := java.Fails("renew", "go"); got != "IllegalStateException" {
			t.Errorf("renewLock of what Go holds: got %q, want IllegalStateException", got)
		}
		unlock(t, lease)
	})
}
