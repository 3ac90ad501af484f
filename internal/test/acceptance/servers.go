// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// Some tests disturb Redis so much that no other test could use the same server. They start
// servers of their own, if tests with servers are requested at all.

// A deployment is servers of one test's own.
type deployment struct {
	address                      // of the user who may do everything
	*servers.Deployment          // of one node, if it stands alone
	rights              []string // that a user needs there
	// refused is what a user is refused and does not need: rueidis asks, by the way,
	// whether this is a Cluster, and introduces itself. A refusal is an answer, too.
	refused []string
}

// config has servers remember whatever they refuse.
func config(t *testing.T, e *servers.Encryption) servers.Config {
	t.Helper()
	kit.Require(t, "ASYNCLOCK_REDIS_URL")
	return servers.Config{Encryption: e, Args: []string{"--acllog-max-len", "1000"}}
}

// startAlone starts one server.
func startAlone(t *testing.T, e *servers.Encryption) *deployment {
	t.Helper()
	r := redistest.Start(t, config(t, e))
	always, _ := rights(t)
	return &deployment{
		address: address{r.URL(), e}, Deployment: &servers.Deployment{Nodes: []*servers.Redis{r}},
		rights: always, refused: []string{"cluster", "client"},
	}
}

// startSentinelSet starts a primary with one replica and one sentinel.
func startSentinelSet(t *testing.T, e *servers.Encryption) *deployment {
	t.Helper()
	d := redistest.StartSentinel(t, config(t, e))
	always, _ := rights(t)
	return &deployment{
		address: address{d.URL(), e}, Deployment: d,
		rights: append(always, "+role"), refused: []string{"cluster", "client"},
	}
}

// startCluster starts a Cluster of three masters.
func startCluster(t *testing.T, e *servers.Encryption) *deployment {
	t.Helper()
	d := redistest.StartCluster(t, config(t, e), 3)
	_, inCluster := rights(t)
	return &deployment{address: address{d.URL(), e}, Deployment: d, rights: inCluster, refused: []string{"client"}}
}

// ask sends a command to a server and returns the reply as text.
func ask(t *testing.T, r *servers.Redis, words ...string) string {
	t.Helper()
	reply, err := r.Text(t.Context(), words...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}
