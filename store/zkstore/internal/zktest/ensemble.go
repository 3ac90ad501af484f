// SPDX-License-Identifier: Apache-2.0

package zktest

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// Need leaves the test out where no ZooKeeper is installed.
func Need(t testing.TB) {
	t.Helper()
	if err := servers.FindZooKeeper(); err != nil {
		kit.Skip(t, "ZooKeeper is not installed: "+err.Error())
	}
}

// StartEnsemble starts three servers, which end with the test.
func StartEnsemble(t testing.TB) *servers.Ensemble {
	t.Helper()
	Need(t)
	e, err := servers.StartEnsemble(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// Roles waits until each server of an ensemble of three has found its role.
func Roles(t testing.TB, e *servers.Ensemble) (leader *servers.ZooKeeper, followers []*servers.ZooKeeper) {
	t.Helper()
	kit.Eventually(t, "a leader and two followers", func() bool {
		var err error
		leader, followers, err = e.Roles(t.Context())
		return err == nil && len(followers) == 2
	})
	return leader, followers
}
