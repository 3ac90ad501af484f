// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A user is who our clients log in as, with the rights that package redisstore
// names for the prefix "story".
const (
	login      = "locker"
	password   = "secret"
	baseRights = "on >" + password + " resetkeys ~story:{* -@all" +
		" +evalsha +eval +hello +ping +get +set +exists +del +pexpire +pttl +time" +
		" +zadd +zcard +zrange +zrank +zrem +zremrangebyscore +zscore +hget +hset +hdel +hlen"
	messageRights = " &story:* +publish +subscribe +unsubscribe +pubsub|numsub"
	// askIfCluster is how rueidis finds out; being refused is an answer, too.
	askIfCluster = "cluster|slots"
)

func openOwnServer(t *testing.T) (*place, *server) {
	t.Helper()
	s := startServer(t)
	return openRedis(t, s.url(), "story"), s
}

func TestScriptsThatTheServerForgetsAreTold(t *testing.T) {
	t.Parallel()
	p, server := openOwnServer(t)
	crew := p.newCrew(no)
	for range 20 {
		crew.advance(3)
		server.ask(t, "SCRIPT", "FLUSH")
	}
	crew.wantNothingLost()
}

func TestLostSubscriptionsLoseNobody(t *testing.T) {
	t.Parallel()
	const times = 10
	p, server := openOwnServer(t)
	crew := p.newCrew(no)
	crew.advance(3)
	start := time.Now()
	for range times {
		server.ask(t, "CLIENT", "KILL", "TYPE", "pubsub")
		crew.advance(3)
	}
	if took := time.Since(start); took > times*soon {
		t.Errorf("after %d losses the work went on within %v, want it when the subscription is back, not by heartbeats", times, took)
	}
	crew.wantNothingLost()
}

func TestLostConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	p, server := openOwnServer(t)
	crew := p.newCrew(no)
	for range 10 {
		crew.advance(3)
		server.ask(t, "CLIENT", "KILL", "TYPE", "normal") // not the one that asks
	}
	crew.wantNothingLost()
}

func TestServerThatForgetsEverythingEndsLeases(t *testing.T) {
	t.Parallel()
	p, server := openOwnServer(t)
	ours, theirs := p.client(asynclock.WithTTL(short)), p.client(asynclock.WithTTL(short))
	first := p.lock(ours, "key")
	pending := theirs.LockChan(p.ctx, "key")
	p.awaitWaiters(ours, "key", 1)
	server.ask(t, "FLUSHALL")
	start := time.Now()
	p.awaitEnd(first)
	if took := time.Since(start); took > short {
		t.Errorf("the loss was noticed after %v, want it at the next renewal, within the TTL of %v", took, short)
	}
	if !errors.Is(first.Err(), asynclock.ErrLost) {
		t.Errorf("the lease: got %v, want ErrLost", first.Err())
	}
	next := p.claim(pending) // its place is gone, too; its next heartbeat says that it waits
	if next.Token() <= first.Token() {
		t.Errorf("the next token: got %d, want more than %d, although the counter is lost", next.Token(), first.Token())
	}
	p.unlock(next)
}

func TestUserWithTheLeastRightsCanDoEverything(t *testing.T) {
	t.Parallel()
	p := openForUser(t, baseRights+messageRights, []string{askIfCluster})
	counterLosesNothing(p)
	clientsAreServedInOrder(p)
	wokenWaiterRunsAtOnce(p)
	endedWaitLeavesNoTrace(p)
	forceTakesTheKey(p)
}

func TestUserWhoMayNotSubscribePolls(t *testing.T) {
	t.Parallel()
	var log journal
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p := openForUser(t, baseRights+" resetchannels", []string{askIfCluster, "subscribe"}, redisstore.WithLogger(logger))
	counterLosesNothing(p)
	wokenWaiterRunsAtOnce(p) // not at once, but many times per heartbeat

	// Each store that had to do without has said so once.
	stores := 4 + 2
	if got := strings.Count(log.String(), "no usable pub-sub"); got != stores {
		t.Errorf("warnings: got %d, want one for each of %d stores:\n%s", got, stores, log.String())
	}
}

// openForUser makes a place whose clients log in as a user with the given
// rights, and checks in the end that they were refused nothing but what is
// expected: as ACL LOG names it.
func openForUser(t *testing.T, rights string, refused []string, options ...redisstore.Option) *place {
	t.Helper()
	server := startServer(t)
	server.ask(t, append([]string{"ACL", "SETUSER", login}, strings.Fields(rights)...)...)
	p := openRedis(t, "redis://"+login+":"+password+"@"+server.addr(), "story", options...)
	t.Cleanup(func() {
		ctx := context.Background()
		log, err := server.client.Do(ctx, server.client.B().Arbitrary("ACL", "LOG").Build()).ToArray()
		if err != nil {
			t.Error(err)
		}
		for _, m := range log {
			if entry, err := m.AsStrMap(); err != nil || !slices.Contains(refused, entry["object"]) {
				t.Errorf("refused by the server: got %v, %v, want nothing but %q", entry, err, refused)
			}
		}
	})
	return p
}

// A journal is a log that may be written from anywhere.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func TestClientsGoOnAfterAFailover(t *testing.T) {
	t.Parallel()
	set := startSentinelSet(t)
	p := openRedis(t, set.url, "story")
	p.redis.lossy = true
	// A replica may miss the last locks and unlocks. The store does not promise
	// more than tokens that rise, and to go on, at the latest after a TTL.
	crew := p.newCrew(func(err error) bool {
		return errors.Is(err, asynclock.ErrLost) || errors.Is(err, asynclock.ErrUnreachable)
	}, asynclock.WithTTL(short))
	for range 2 {
		crew.advance(3)
		set.failOver(t)
	}
	crew.advance(3)
	crew.stop()
}

func TestClusterKeepsKeysOnAllItsMasters(t *testing.T) {
	t.Parallel()
	p := onServer("ASYNCLOCK_CLUSTER_URL")(t)(t)
	ours, theirs := p.client(), p.client()
	keys := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	for _, key := range keys {
		lease := p.lock(ours, key)
		pending := theirs.LockChan(p.ctx, key)
		p.awaitWaiters(ours, key, 1)
		p.unlock(lease)
		p.unlock(p.claim(pending))
	}
	primaries := p.redis.primaries(p.ctx, t)
	if len(primaries) < 3 {
		t.Fatalf("primaries: got %d, want 3", len(primaries))
	}
	for _, node := range primaries {
		if len(p.redis.keysOn(p.ctx, t, node)) == 0 {
			t.Error("a master has no key")
		}
	}
}

func TestClientsFollowAMovingSlot(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	p := openRedis(t, nodes[0].url(), "story")
	crew := p.newCrew(no)
	crew.advance(1)
	slot := nodes[0].ask(t, "CLUSTER", "KEYSLOT", p.redisKeys(jobKey(0))['f'])
	owner := ownerOf(t, nodes, slot)
	for i := range 3 {
		crew.advance(3)
		moveSlot(t, slot, nodes[(owner+i)%3], nodes[(owner+i+1)%3])
	}
	crew.advance(3)
	crew.wantNothingLost()
}

// ownerOf returns which node has a slot.
func ownerOf(t *testing.T, nodes []*server, slot string) int {
	t.Helper()
	for i, n := range nodes {
		if reply, err := n.try(t.Context(), "CLUSTER", "COUNTKEYSINSLOT", slot); err == nil && reply != "0" {
			return i
		}
	}
	t.Fatalf("no node has keys of slot %s", slot)
	return 0
}
