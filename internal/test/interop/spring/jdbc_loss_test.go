// SPDX-License-Identifier: Apache-2.0

package spring

import "testing"

// The stories of loss_test.go, in a database, and another one.

func TestJDBCJavaLoses(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		b.ttl = short
		java, client := b.openPeer(t), b.client(t)
		t.Run("by its TTL", func(t *testing.T) { expireUnderJava(t, java, client) })
		t.Run("but renews", func(t *testing.T) { renewTooLate(t, b, java, client) })
	})
}

func TestJDBCGoLoses(t *testing.T) {
	onEachTable(t, func(t *testing.T, b table) {
		java := b.openPeer(t)
		b.lease = short
		t.Run("by its TTL", func(t *testing.T) { expireUnderGo(t, java, b.client(t)) })
		t.Run("killed", func(t *testing.T) { killGo(t, java, b.part("key")) })
	})
}
