// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// childEnv tells this program to be a holder to be killed.
const childEnv = "ASYNCLOCK_INTEROP_CHILD"

// A part is what a child is to do: hold a key until it is killed, in one of two
// stores.
type part struct {
	Redis *redisPart
	SQL   *sqlPart
	Key   string
	TTL   time.Duration
}

type redisPart struct {
	URL, Registry string
	Mode          springredis.LockType
}

// playChild does a child's part, if this is one.
func playChild() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	client, err := asynclock.New(p.store(), asynclock.WithTTL(p.TTL))
	if err != nil {
		panic(err)
	}
	if _, err := client.Lock(context.Background(), p.Key); err != nil {
		panic(err)
	}
	javapeer.Hold()
}

func (p part) store() store.Store {
	if p.SQL != nil {
		return p.SQL.store()
	}
	option, err := rueidis.ParseURL(p.Redis.URL)
	if err != nil {
		panic(err)
	}
	store, err := springredis.Open(option, p.Redis.Registry, springredis.WithLockType(p.Redis.Mode))
	if err != nil {
		panic(err)
	}
	return store
}

// startChild starts a Go process that holds a key, and renews it, until the
// function that it returns is called, which kills it.
func startChild(t *testing.T, p part) (kill func()) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return javapeer.StartHolder(t, childEnv, string(text))
}

// part is what a child is to do that holds a key of this registry.
func (s setup) part(t *testing.T, key string) part {
	t.Helper()
	return part{Redis: &redisPart{URL: kit.Require(t, "ASYNCLOCK_REDIS_URL"), Registry: s.registry, Mode: s.mode}, Key: key, TTL: s.ttl}
}
