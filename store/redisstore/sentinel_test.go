// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// startSentinel starts a sentinel of its own mind that watches one primary, and returns
// when it knows the replica.
func (e encryption) startSentinel(t *testing.T, primary, replica *server) (addr string) {
	t.Helper()
	replica.follows(t, primary) // a sentinel asks for replicas at once, and not again for 10 s
	addr = freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := strings.Join([]string{
		"bind 127.0.0.1", "sentinel monitor locks " + strings.Replace(primary.Option.InitAddress[0], ":", " ", 1) + " 1",
		"sentinel down-after-milliseconds locks 500", "sentinel failover-timeout locks 3000", "",
	}, "\n")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := redistest.Start(t, "tcp", addr, "redis-server", append([]string{config, "--sentinel"}, e.of.Args(port)...)...); err != nil {
		t.Fatal(err)
	}
	option := e.option(t, addr)
	option.ForceSingleClient = true
	sentinel := onServer(t, option)
	kit.Eventually(t, "the sentinel knows the replica", func() bool {
		text, err := sentinel.Try("SENTINEL", "REPLICAS", "locks")
		return err == nil && strings.Contains(text, "slave") && strings.Contains(text, "master-link-status:ok")
	})
	return addr
}

// follows waits until the server is in step with its primary, and that one knows.
func (sv *server) follows(t *testing.T, primary *server) {
	t.Helper()
	kit.Eventually(t, "the replica is in step", func() bool {
		return sv.fact("master_link_status") == "up" && strings.Contains(primary.fact("slave0"), "state=online")
	})
}

func TestASentinelFailsOver(t *testing.T) {
	t.Parallel()
	p := sentinelPair(t)
	sv, replica := p.sv, p.replica
	st := sv.newStore(t, WithoutFailoverGrace())
	a, b := join(t, st), join(t, st)
	held := a.Hold("key", "a")
	b.Wait("key", "b")
	kit.Eventually(t, "the replica is in step", func() bool {
		return replica.Number(t, "EXISTS", sv.redisKey("key", 'l'), sv.redisKey("key", 'w')) == 2
	})

	p.promote()
	renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long}
	kit.Eventually(t, "the new primary renews", func() bool {
		err := a.renew(renewal).Err
		if err != nil && !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Fatalf("Renew during a failover: got %v, want ErrUnreachable or ErrOutcomeUnknown", err)
		}
		return err == nil
	})
	kit.Eventually(t, "the waiter hears from the new primary", func() bool {
		n, err := sv.Try("PUBSUB", "NUMSUB", b.session.classic.Load().channel.name)
		return err == nil && strings.HasSuffix(n, " 1]") && b.Wait("key", "b").Recheck == 0
	})
	a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token})
	if e := b.Heard(store.EventGrant, "b"); e.Grant.Token <= held.Token {
		t.Errorf("token: got %d, want more than %d", e.Grant.Token, held.Token)
	}
}
