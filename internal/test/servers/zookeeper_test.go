// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func needZooKeeper(t *testing.T) {
	t.Helper()
	if err := FindZooKeeper(); err != nil {
		kit.Skip(t, "ZooKeeper is missing: "+err.Error())
	}
}

func TestAZooKeeperComesAndGoes(t *testing.T) {
	t.Parallel()
	needZooKeeper(t)
	z, err := StartZooKeeper(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer z.Kill()
	z.Kill()
	if err := z.Await(t.Context()); !errors.Is(err, errEnded) {
		t.Errorf("Await of one that has ended: got %v, want errEnded", err)
	}
	if err := z.Restart(t.Context()); err != nil {
		t.Errorf("after the restart: got %v, want it to serve", err)
	}
}

func TestAnEnsembleElects(t *testing.T) {
	t.Parallel()
	needZooKeeper(t)
	e, err := StartEnsemble(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	// One that has served may be found not serving once more: it is asked with a time
	// limit, and on a busy machine the others may have lost sight of it meanwhile.
	err = Await(t.Context(), "one leader and two followers", func(ctx context.Context) error {
		_, followers, err := e.Roles(ctx)
		if err == nil && len(followers) != 2 {
			err = errors.New("a follower is missing")
		}
		return err
	})
	if err != nil || len(e.Addrs()) != 3 {
		t.Errorf("got %d servers, %v, want three", len(e.Addrs()), err)
	}
}
