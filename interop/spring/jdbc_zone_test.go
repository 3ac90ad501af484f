// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Neither the zone of the JVM nor that of Go's session with the server shifts what
// is in the table. (docs/spring.md speaks of the one hour a year in which the JVM's
// zone does, with releases that hand a Timestamp to the driver.)
func TestJDBCZones(t *testing.T) {
	for _, zone := range []string{"UTC", "Pacific/Kiritimati"} {
		t.Run(zone, func(t *testing.T) {
			onEachTable(t, func(t *testing.T, b table) {
				b.options = []string{"-Duser.timezone=" + zone}
				java := b.startPeer(t)
				client := b.inZone(t, zone).client(t)

				lease := lock(t, client, "key")
				wantRefused(t, java, "key")
				unlock(t, lease)
				java.do("lock", "key")
				if got := heldBy(t, client, "key").Remaining; got <= long-30*time.Second || got > long {
					t.Errorf("what remains of Java's TTL of %v: got %v", long, got)
				}
				b.end(t, time.Second)
				lease = lock(t, client, "key", asynclock.WithoutRenewal())
				b.end(t, time.Second)
				awaitJava(t, java, "key")
				java.do("unlock", "key")
				if err := lease.Unlock(t.Context()); err == nil {
					t.Error("Unlock of a lease that has ended in the table: got no error")
				}
			})
		})
	}
}
