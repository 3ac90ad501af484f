// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/sqlstore/springsql"
)

// TestNoIncrementIsLost, in a database.
func TestJDBCNoIncrementIsLost(t *testing.T) {
	onEachTableAlone(t, func(t *testing.T, b table) {
		raise(t, b.openPeer(t), 150, func() *asynclock.Client {
			return b.client(t, springsql.WithPollInterval(2*time.Millisecond))
		})
	})
}

// Keys mean the same in both languages, in a region whose name may be written in
// more than one way too. Those that look like a UUID are one to Java, whatever the
// case of their letters.
func TestJDBCKeysMeanTheSame(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		b.region = b.kind.region
		java, client := b.openPeer(t), b.client(t)
		const id = "4f0c7a4e-1d4c-4b9f-9e6a-0a7f0b5f1c2d"
		share(t, java, client, "Spring JdbcLockRegistry ",
			id, strings.ToUpper(id), id+" ", "{"+id+"}", strings.ReplaceAll(id, "-", ""), "00000000-0000-0000-0000-000000000000",
			strings.Repeat("long ", 100), strings.Repeat("界", asynclock.MaxKeyLen/3))

		lease := lock(t, client, strings.ToUpper(id))
		wantRefused(t, java, id)
		wantHeld(t, client, id)
		unlock(t, lease)
	})
}

// The stories of one Java process that keeps what it has.
func TestJDBCHolders(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		java, client := b.openPeer(t), b.client(t)
		t.Run("re-entry in Java", func(t *testing.T) { reenter(t, java, client, "IllegalMonitorStateException") })
		t.Run("Java holds what Go held", func(t *testing.T) {
			replaceGo(t, java, client, func() { b.change(t, "DELETE FROM INT_LOCK") })
		})
		t.Run("force takes from Java", func(t *testing.T) { forceJava(t, java, client) })
		t.Run("renewal by hand", func(t *testing.T) { renewByHand(t, b, java, client) })
		t.Run("another region is a world of its own", func(t *testing.T) {
			b.region = "elsewhere"
			client := b.client(t)
			java.Do("lock", "key")
			lease := lock(t, client, "key")
			java.Do("unlock", "key")
			awaitJava(t, java, "key")
			java.Do("unlock", "key")
			unlock(t, lease)
		})
	})
}

// Nothing wakes Java, and Java wakes nobody: both languages ask again and again.
func TestJDBCLatency(t *testing.T) {
	onEachTableAlone(t, func(t *testing.T, b table) {
		passOn(t, b.openPeer(t), b.client(t), 3*springsql.DefaultPollInterval)
	})
}
