// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// What docs/stores/spring.md warns of, in Java: a waiter in mode PUB_SUB_LOCK that no
// message reaches sleeps for all the time it was given, however long the key has
// been free, and then has it. Should a release mend one of these, its test fails
// and the documentation is to be changed.
func TestWhatJavaSleepsOver(t *testing.T) {
	const sleep = 2 * short // what Java's waiter is given
	start := func(t *testing.T, registry string, options ...string) (*javapeer.Peer, setup) {
		t.Helper()
		s := setup{line: lines[0], registry: registry, mode: springredis.PubSubLock, ttl: long, options: options}
		return openPeer(t, s), s
	}
	took := func(t *testing.T, java *javapeer.Peer, answer <-chan string, began time.Time) time.Duration {
		t.Helper()
		if got, exception := java.Await(answer); got != "true" {
			t.Fatalf("tryLock in Java: got %s %s, want true in the end", got, exception)
		}
		return time.Since(began)
	}
	wantSleep := func(t *testing.T, got time.Duration) {
		t.Helper()
		if got < sleep-100*time.Millisecond {
			t.Errorf("tryLock in Java: had the key after %v, want it to sleep for %v, as the documentation says", got, sleep)
		}
	}
	kit.Require(t, "ASYNCLOCK_SPRING")
	t.Parallel()

	t.Run("the end of a TTL", func(t *testing.T) {
		t.Parallel()
		java, s := start(t, "interop "+uuid.NewString())
		s.ttl = short
		kill := startChild(t, s.part(t, "key"))
		began := time.Now()
		answer := java.Begin("main", "trylockfor", "key", sleep.Milliseconds())
		kill()
		wantSleep(t, took(t, java, answer, began))
	})
	for name, tt := range map[string]struct {
		registry, key string
		options       []string
	}{
		"a message about a key that the JVM's charset lacks": {"interop ", "größe", []string{"-Dfile.encoding=US-ASCII"}},
		"messages for a registry key with glob characters":   {"interop [x] ", "key", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			java, s := start(t, tt.registry+uuid.NewString(), tt.options...)
			client := goClient(t, s)
			java.Await(java.Begin("main", "trylockfor", "another", sleep.Milliseconds())) // the first call of a JVM is slow
			var slept time.Duration
			for pause := sleep / 8; slept < sleep-100*time.Millisecond && pause < sleep; pause *= 2 {
				// After a pause Java is usually asleep. On a busy machine it may not be, and finds the key free.
				lease := lock(t, client, tt.key)
				began := time.Now()
				answer := java.Begin("main", "trylockfor", tt.key, sleep.Milliseconds())
				time.Sleep(pause)
				unlock(t, lease)
				slept = took(t, java, answer, began)
				java.Await(java.Begin("main", "unlock", tt.key))
			}
			wantSleep(t, slept)
		})
	}
}
