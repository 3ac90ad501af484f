// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// Whoever leaves while messages come in does not keep the connection, which others
// share, from being read for longer than redisconn.quitWithin.
func TestLeavingUnderALoadOfMessages(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	const times = 10
	var took []time.Duration
	for range times {
		c := join(t, st)
		ch := c.session.classic.Load().channel
		kit.Eventually(t, "the inbox works", func() bool { return sv.receivers(t, ch) > 0 })
		stop := make(chan struct{})
		var flood sync.WaitGroup
		flood.Go(func() {
			messages := "for i = 1, 50 do redis.call('PUBLISH', KEYS[1], ARGV[1]) end return 1"
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := sv.Try("EVAL", messages, "1", ch.name, strings.Repeat("noise ", 10)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		begin := time.Now()
		if err := c.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(begin))
		close(stop)
		flood.Wait()
	}
	// When leaving waited for up to a second, ten times took eight; now all take less than
	// one. Half of them is looked at, for on a busy machine some may take any time.
	slices.Sort(took)
	if limit := 400 * time.Millisecond; took[times/2] > limit {
		t.Errorf("leaving: took %v, want half of them to take no more than %v", took, limit)
	}
}

// A server that refuses everything for a while, as it does in anybody's long script, does not end processes whose
// clients and observers leave meanwhile. The others go on when it is over.
func TestLeavingAServerThatRefusesEverything(t *testing.T) {
	t.Parallel()
	for _, state := range []struct {
		name, code string
		begin, end func(*testing.T, *server)
	}{
		{"a long script", "BUSY", beginScript, func(t *testing.T, sv *server) { sv.Do(t, "SCRIPT", "KILL") }},
		{"a replica without its primary", "MASTERDOWN", followNobody, func(t *testing.T, sv *server) { sv.Do(t, "REPLICAOF", "NO", "ONE") }},
	} {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			sv := ownServer(t, "--lua-time-limit", "10", "--replica-serve-stale-data", "no")
			st := sv.store(t, WithoutFailoverGrace())
			stays, watches, alone := join(t, st), join(t, st), join(t, sv.newStore(t, WithoutFailoverGrace()))
			watched := []string{"watched", "watched for longer"}
			for _, key := range watched {
				if err := watches.session.Observe(key, true); err != nil {
					t.Fatal(err)
				}
			}
			kit.Eventually(t, "announcements come through", func() bool { return hears(st, len(watched)) })
			refuses := func() bool {
				_, err := sv.Try("GET", "x")
				return err != nil && strings.HasPrefix(err.Error(), state.code)
			}

			state.begin(t, sv)
			kit.Eventually(t, "the server refuses everything", refuses)
			if err := watches.session.Observe(watched[0], false); err != nil {
				t.Error(err)
			}
			for _, c := range []*client{watches, alone} {
				if err := c.session.Close(t.Context()); err != nil {
					t.Errorf("Close: got %v, want no error", err)
				}
			}
			state.end(t, sv)
			kit.Eventually(t, "it serves again", func() bool { return !refuses() })

			token := stays.Hold("key", "a").Token
			stays.waitForMessage("key", "b")
			stays.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
			stays.Heard(store.EventGrant, "b")
		})
	}
}

// hears reports whether announcements of so many buckets come through.
func hears(st *Store, buckets int) bool {
	st.hub.mu.Lock()
	defer st.hub.mu.Unlock()
	live := 0
	for _, b := range st.hub.buckets {
		if b.live {
			live++
		}
	}
	return live == buckets
}

// beginScript begins one that does not end by itself.
func beginScript(t *testing.T, sv *server) {
	t.Helper()
	other, err := rueidis.NewClient(sv.Option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	go other.Do(context.WithoutCancel(t.Context()), other.B().Eval().Script("while true do end").Numkeys(0).Build()) // ends when the script is killed
}

func followNobody(t *testing.T, sv *server) {
	t.Helper()
	sv.Do(t, "REPLICAOF", "127.0.0.1", "1")
}
