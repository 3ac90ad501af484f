// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/javapeer"
	"github.com/asynclock/asynclock-go/internal/needed"
)

// startPeer starts a process with a ZookeeperLockRegistry below a root, which ends with
// the test.
func startPeer(t *testing.T, root string, session time.Duration) *javapeer.Peer {
	t.Helper()
	jar := filepath.Join(needed.Variable(t, "ASYNCLOCK_ZOOKEEPER_PEER"), "peer.jar")
	return javapeer.Start(t, jar, nil, needed.Variable(t, "ASYNCLOCK_ZOOKEEPER"), root, fmt.Sprint(session.Milliseconds()))
}
