// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// TestAServerThatIsDownAtTheStartVotesLater: a process starts without one of three servers, which comes up when another goes down.
func TestAServerThatIsDownAtTheStartVotesLater(t *testing.T) {
	t.Parallel()
	ports, err := servers.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	late := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	first, second := miniredis.RunT(t), miniredis.RunT(t)
	var nodes []store.Store
	for _, address := range []string{first.Addr(), second.Addr(), late} {
		option := rueidis.ClientOption{InitAddress: []string{address}, ConnWriteTimeout: redistest.Unhurried}
		node, err := redisstore.Open(option, redisstore.WithLazyDial(), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Close)
		nodes = append(nodes, node)
	}
	c := client(t, over(t, nodes...))
	locks := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		l, err := c.Lock(ctx, "key")
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
	if err := locks(); err != nil {
		t.Errorf("Lock with two of three servers: got %v, want the key", err)
	}
	third := miniredis.NewMiniRedis()
	if err := third.StartAddr(late); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(third.Close)
	second.Close()
	kit.Eventually(t, "a lock with the vote of the server that has come up", func() bool { return locks() == nil })
}
