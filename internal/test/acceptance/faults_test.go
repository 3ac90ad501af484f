// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

func openOwnServer(t *testing.T) (*Env, *servers.Redis) {
	t.Helper()
	d := startAlone(t, nil)
	return openRedis(t, d.address, "story"), d.Nodes[0]
}

// onOwnServers runs a test twice: on servers that let everyone do everything, and on servers
// that speak TLS only, with the least rights for the clients. The test itself disturbs the
// servers as another user, with all rights.
func onOwnServers(t *testing.T, start func(*testing.T, *servers.Encryption) *deployment, test func(*testing.T, *Env, *deployment)) {
	t.Helper()
	t.Parallel()
	t.Run("in clear", func(t *testing.T) {
		t.Parallel()
		d := start(t, nil)
		test(t, openRedis(t, d.address, "story"), d)
	})
	t.Run("with the least rights by TLS", func(t *testing.T) {
		t.Parallel()
		d := start(t, redistest.NewEncryption(t))
		test(t, d.openForUser(t, "story"), d)
	})
}

func TestScriptsThatTheServerForgetsAreTold(t *testing.T) {
	onOwnServers(t, startAlone, func(t *testing.T, env *Env, d *deployment) {
		crew := env.newCrew(no)
		for range 20 {
			crew.advance(3)
			ask(t, d.Nodes[0], "SCRIPT", "FLUSH")
		}
		crew.wantNothingLost()
	})
}

func TestLostSubscriptionsLoseNobody(t *testing.T) {
	onOwnServers(t, startAlone, func(t *testing.T, env *Env, d *deployment) {
		const times = 10
		crew := env.newCrew(no)
		crew.advance(3)
		tell(t, env.again, func(env *Env) {
			start := time.Now()
			for range times {
				ask(t, d.Nodes[0], "CLIENT", "KILL", "TYPE", "pubsub")
				crew.advance(3)
			}
			env.wantWithin(times*soon, start, "going on when the subscription is back, not by heartbeats")
		})
		crew.wantNothingLost()
	})
}

func TestLostConnectionsLoseNothing(t *testing.T) {
	onOwnServers(t, startAlone, func(t *testing.T, env *Env, d *deployment) {
		crew := env.newCrew(no)
		for range 10 {
			crew.advance(3)
			ask(t, d.Nodes[0], "CLIENT", "KILL", "TYPE", "normal") // not the one that asks
		}
		crew.wantNothingLost()
	})
}

func TestServerThatForgetsEverythingEndsLeases(t *testing.T) {
	onOwnServers(t, startAlone, func(t *testing.T, env *Env, d *deployment) {
		tell(t, env.again, func(env *Env) {
			ours, theirs := env.client(asynclock.WithTTL(short)), env.client(asynclock.WithTTL(short))
			first := env.lock(ours, "key")
			pending := theirs.LockChan(env.ctx, "key")
			env.awaitWaiters(ours, "key", 1)
			ask(t, d.Nodes[0], "FLUSHALL")
			start := time.Now()
			env.awaitEnd(first)
			env.wantWithin(short, start, "noticing the loss at the next renewal")
			if !errors.Is(first.Err(), asynclock.ErrLost) {
				t.Errorf("the lease: got %v, want ErrLost", first.Err())
			}
			next := env.claim(pending) // its place is gone, too; its next heartbeat says that it waits
			if next.Token() <= first.Token() {
				t.Errorf("the next token: got %d, want more than %d, although the counter is lost", next.Token(), first.Token())
			}
			env.unlock(next)
		})
	})
}

func TestClientsGoOnAfterAFailover(t *testing.T) {
	onOwnServers(t, startSentinelSet, func(t *testing.T, env *Env, d *deployment) {
		env.redis.lossy = true
		// A replica may miss the last locks and unlocks. The store does not promise
		// more than tokens that rise, and to go on, at the latest after a TTL.
		crew := env.newCrew(func(err error) bool {
			return errors.Is(err, asynclock.ErrLost) || errors.Is(err, asynclock.ErrUnreachable)
		}, asynclock.WithTTL(short))
		for range 2 {
			crew.advance(3)
			if err := d.FailOver(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		crew.advance(3)
		crew.stop()
	})
}

func TestClusterKeepsKeysOnAllItsMasters(t *testing.T) {
	t.Parallel()
	env := onServer("ASYNCLOCK_CLUSTER_URL")(t)(t)
	ours, theirs := env.client(), env.client()
	for key := range strings.SplitSeq("abcdefghijklmnopqrstuvwxyz", "") {
		lease := env.lock(ours, key)
		pending := theirs.LockChan(env.ctx, key)
		env.awaitWaiters(ours, key, 1)
		env.unlock(lease)
		env.unlock(env.claim(pending))
	}
	primaries := env.redis.primaries(env.ctx, t)
	if len(primaries) < 3 {
		t.Fatalf("primaries: got %d, want 3", len(primaries))
	}
	for _, node := range primaries {
		if len(env.redis.keysOn(env.ctx, t, node)) == 0 {
			t.Error("a master has no key")
		}
	}
}

func TestClientsFollowAMovingSlot(t *testing.T) {
	onOwnServers(t, startCluster, func(t *testing.T, env *Env, d *deployment) {
		crew := env.newCrew(no)
		crew.advance(1)
		slot := ask(t, d.Nodes[0], "CLUSTER", "KEYSLOT", env.redisKeys(jobKey(0))['l'])
		owner := ownerOf(t, d.Nodes, slot)
		for i := range 3 {
			crew.advance(3)
			move := servers.Move{Slot: slot, From: d.Nodes[(owner+i)%3], To: d.Nodes[(owner+i+1)%3]}
			if err := d.MoveSlot(t.Context(), move); err != nil {
				t.Fatal(err)
			}
		}
		crew.advance(3)
		crew.wantNothingLost()
	})
}

// ownerOf returns which node has a slot.
func ownerOf(t *testing.T, nodes []*servers.Redis, slot string) int {
	t.Helper()
	for i, n := range nodes {
		if reply, err := n.Text(t.Context(), "CLUSTER", "COUNTKEYSINSLOT", slot); err == nil && reply != "0" {
			return i
		}
	}
	t.Fatalf("no node has keys of slot %s", slot)
	return 0
}
