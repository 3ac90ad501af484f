// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// processes is the one that the tests share.
var processes javapeer.Shared

// openPeer makes a ZookeeperLockRegistry below a root, in the process that the tests
// share. It ends with the test.
func openPeer(t *testing.T, root string, session time.Duration) *javapeer.Peer {
	t.Helper()
	return openIn(t, processes.Process(t, jar(t)), root, session)
}

// openIn is openPeer in any process.
func openIn(t *testing.T, process *javapeer.Process, root string, session time.Duration) *javapeer.Peer {
	t.Helper()
	return process.Open(t, kit.Require(t, "ASYNCLOCK_ZOOKEEPER"), root, fmt.Sprint(session.Milliseconds()))
}

func jar(t *testing.T) string {
	t.Helper()
	return filepath.Join(kit.Require(t, "ASYNCLOCK_ZOOKEEPER_PEER"), "peer.jar")
}
