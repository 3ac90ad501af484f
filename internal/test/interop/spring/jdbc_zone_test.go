// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// east is a zone of time that tests share a process in.
const east = "Asia/Kolkata"

// jvmIn is what a JVM is told so that it is in a zone. For that in which all others are
// it is nothing, so that they share their process.
func jvmIn(name string) []string {
	if name == javapeer.Zone {
		return nil
	}
	return []string{"-Duser.timezone=" + name}
}

// Neither the zone of the JVM nor that of Go's session with the server shifts what
// is in the table. (docs/stores/spring.md speaks of the one hour a year in which the JVM's
// zone does, with releases that hand a Timestamp to the driver.)
func TestJDBCZones(t *testing.T) {
	t.Parallel()
	for _, z := range []zone{{javapeer.Zone, "+00:00"}, {east, "+05:30"}} {
		t.Run(z.name, func(t *testing.T) {
			onEachTable(t, func(t *testing.T, b table) {
				b.options = jvmIn(z.name)
				java := b.openPeer(t)
				client := b.inZone(t, z).client(t)

				lease := lock(t, client, "key")
				wantRefused(t, java, "key")
				unlock(t, lease)
				java.Do("lock", "key")
				if got := heldBy(t, client, "key").Remaining; got <= long-30*time.Second || got > long {
					t.Errorf("what remains of Java's TTL of %v: got %v", long, got)
				}
				b.end(t, time.Second)
				lease = lock(t, client, "key", asynclock.WithRenewal(false))
				b.end(t, time.Second)
				awaitJava(t, java, "key")
				if err := lease.Unlock(t.Context()); !errors.Is(err, asynclock.ErrLost) {
					t.Errorf("Unlock of what Java has taken: got %v, want ErrLost", err)
				}
				wantHeld(t, client, "key")
				java.Do("unlock", "key")
			})
		})
	}
}

// What docs/stores/spring.md warns of: releases that hand a Timestamp to the driver, a
// driver that is told to keep instants, and a connection in another zone than the
// JVM's. Java's clock is off by what lies between the two zones, and Java takes live
// locks, or has its own taken. Should a release mend this, the test fails and the
// documentation is to be changed.
func TestJDBCInstantsKept(t *testing.T) {
	kit.Require(t, "ASYNCLOCK_SPRING")
	t.Parallel()
	start := func(t *testing.T, zone string) (*javapeer.Peer, *asynclock.Client) {
		t.Helper()
		b := newTable(t, mariaDB, before7)
		b.options = jvmIn(zone)
		b.parameters = "?connectionTimeZone=UTC&preserveInstants=true"
		return b.openPeer(t), b.client(t)
	}
	t.Run("west of UTC", func(t *testing.T) {
		t.Parallel()
		java, client := start(t, "Pacific/Honolulu")
		lease := lock(t, client, "key")
		if got := java.Do("trylock", "key"); got != "true" {
			t.Errorf("tryLock of a live lock: got %s, want true, as the documentation warns", got)
		}
		if err := lease.Renew(t.Context(), long); !errors.Is(err, asynclock.ErrStolen) {
			t.Errorf("Renew after that: got %v, want ErrStolen", err)
		}
	})
	t.Run("east of UTC", func(t *testing.T) {
		t.Parallel()
		java, client := start(t, east)
		java.Do("lock", "key")
		wantFree(t, client, "key") // takes it from Java, as the documentation warns
	})
}
