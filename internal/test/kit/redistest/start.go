// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// Start starts a server that ends with the test, in a directory of the test's. If it is
// not installed, or can't speak TLS, the test is left out.
func Start(t testing.TB, c servers.Config) *servers.Redis {
	t.Helper()
	return endsWith(t, c, servers.StartRedis)
}

// StartSentinel is Start for a primary with one replica, watched by one sentinel.
func StartSentinel(t testing.TB, c servers.Config) *servers.Deployment {
	t.Helper()
	return endsWith(t, c, func(ctx context.Context, c servers.Config) (*servers.Deployment, error) {
		return servers.StartSentinel(ctx, c, 1, 1)
	})
}

// StartCluster is Start for a Cluster of so many masters.
func StartCluster(t testing.TB, c servers.Config, masters int) *servers.Deployment {
	t.Helper()
	return endsWith(t, c, func(ctx context.Context, c servers.Config) (*servers.Deployment, error) {
		return servers.StartCluster(ctx, c, masters, 0)
	})
}

func endsWith[S interface{ Close() }](t testing.TB, c servers.Config, start func(context.Context, servers.Config) (S, error)) S {
	t.Helper()
	c.Dir = t.TempDir()
	s, err := start(t.Context(), c)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		kit.Skip(t, err.Error())
	case errors.Is(err, servers.ErrNoTLS):
		t.Skip("left out: this redis-server was built without TLS")
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
