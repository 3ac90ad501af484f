// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// How long it takes from an unlock in one language until a waiter of the other
// has the key. Each bound is one that only a message, or only polling, can keep:
// without the message a waiter in mode PUB_SUB_LOCK would sleep a minute in Java,
// and some two thirds of a second at the least in Go.
func TestWakeUpLatency(t *testing.T) {
	onEachAlone(t, func(t *testing.T, s setup) {
		limit := 2 * springredis.DefaultPollInterval
		if s.mode == springredis.PubSubLock {
			limit = 100 * time.Millisecond
		}
		passOn(t, openPeer(t, s), goClient(t, s), limit)
	})
}

// passOn passes a key to and fro between the languages, and checks that the median
// of the times from an unlock to the other's lock is within the limit.
func passOn(t *testing.T, java *javapeer.Peer, client *asynclock.Client, limit time.Duration) {
	t.Helper()
	const rounds = 9
	settle := func() { time.Sleep(80*time.Millisecond + rand.N(100*time.Millisecond)) } // so that the waiter is asleep; if not, it is only faster

	var toJava []time.Duration
	for range rounds {
		lease := lock(t, client, "key")
		waiter := java.Begin("waiter", "lock", "key")
		settle()
		began := time.Now()
		unlock(t, lease)
		if value, exception := java.Await(waiter); exception != "" {
			t.Fatalf("lock in Java: got %s, want it", value)
		}
		toJava = append(toJava, time.Since(began))
		java.Await(java.Begin("waiter", "unlock", "key"))
	}
	report(t, "Go to Java", toJava, limit)

	var toGo []time.Duration
	for range rounds {
		java.Do("lock", "key")
		future := client.LockChan(t.Context(), "key")
		settle()
		began := time.Now()
		unlocked := java.Begin("main", "unlock", "key")
		lease, err := (<-future).Lease()
		toGo = append(toGo, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		java.Await(unlocked)
		unlock(t, lease)
	}
	report(t, "Java to Go", toGo, limit)
}

func report(t *testing.T, what string, latencies []time.Duration, limit time.Duration) {
	t.Helper()
	slices.Sort(latencies)
	median, worst := latencies[len(latencies)/2], latencies[len(latencies)-1]
	t.Logf("%s: median %v, worst %v of %d", what, median.Round(10*time.Microsecond), worst.Round(10*time.Microsecond), len(latencies))
	if median > limit {
		t.Errorf("%s: got a median of %v, want at most %v", what, median, limit)
	}
}
