// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A redisEnv is what a story can see and do behind the library's back.
type redisEnv struct {
	prefix string
	admin  rueidis.Client
	// lossy: the server may lose what it has acknowledged, the end of a wait too.
	lossy bool
}

// atOnce: most servers here are younger than the leases that they might have
// forgotten, and some lose their data in the course of a story. That nothing is
// granted then has tests in package redisstore.
var atOnce = redisstore.WithoutFailoverGrace()

// An address is where a Redis is, and who comes there.
type address struct {
	url        string
	encryption *servers.Encryption
}

func (a address) option() (rueidis.ClientOption, error) {
	option, err := rueidis.ParseURL(a.url)
	if err != nil {
		return option, err
	}
	option.DisableCache = true // miniredis has none
	option.TLSConfig, err = a.encryption.ClientTLS()
	if option.Sentinel.MasterSet != "" {
		option.Sentinel.TLSConfig = option.TLSConfig
	}
	return option, err
}

// openRedis makes a place with a prefix of its own on a server, and checks in
// the end that nothing but last tokens is left of it.
func openRedis(t *testing.T, at address, prefix string, options ...redisstore.Option) *Env {
	t.Helper()
	env := NewEnv(t)
	option := redisOption(t, at)
	option.Username, option.Password = "", "" // whoever the clients are, this one may do everything
	admin, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	env.redis = &redisEnv{prefix: prefix, admin: admin}
	env.URL, env.Area, env.encryption = at.url, prefix, at.encryption
	env.Connect = func(c *faultconn.Line) store.Store {
		option := redisOption(t, at)
		option.DialCtxFn = c.DialRedis
		store, err := redisstore.Open(option, slices.Concat([]redisstore.Option{redisstore.WithPrefix(prefix), redisstore.WithoutLogger(), atOnce}, options)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	}
	t.Cleanup(func() { env.redis.wantOnlyTokens(t) })
	return env
}

func redisOption(t *testing.T, at address) rueidis.ClientOption {
	t.Helper()
	option, err := at.option()
	if err != nil {
		t.Fatal(err)
	}
	return option
}

// isNumber reports whether the value of a Redis key is a number.
func (r *redisEnv) isNumber(ctx context.Context, name string) bool {
	_, err := r.admin.Do(ctx, r.admin.B().Get().Key(name).Build()).AsInt64()
	return err == nil
}

// wantOnlyTokens checks that nothing is left to expire but notes, the keys' last tokens, in a counter or
// in place of the record, and, where a request had no reply, the names of owners that are gone; and
// that nobody is subscribed.
func (r *redisEnv) wantOnlyTokens(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	inUse := func() (names []string) {
		for _, name := range r.keys(ctx, t) {
			if kind := name[len(name)-1]; kind != 'f' && kind != 'x' && kind != 'n' && (kind != 'l' || !r.isNumber(ctx, name)) {
				names = append(names, name)
			}
		}
		return append(names, r.channels(ctx, t)...)
	}
	for deadline := time.Now().Add(patience); !r.lossy && len(inUse()) > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if left := inUse(); !r.lossy && len(left) > 0 {
		t.Errorf("keys and channels left: got %q, want none", left)
	}
	for _, name := range r.keys(ctx, t) {
		ttl, err := r.admin.Do(ctx, r.admin.B().Pttl().Key(name).Build()).AsInt64()
		if err != nil || ttl == -1 {
			t.Errorf("TTL of %q: got %d, %v, want one", name, ttl, err)
		}
		r.admin.Do(ctx, r.admin.B().Del().Key(name).Build()) // the server may be somebody's
	}
}

// primaries returns the nodes that have keys of their own.
func (r *redisEnv) primaries(ctx context.Context, t *testing.T) (all []rueidis.Client) {
	t.Helper()
	if r.admin.Mode() != rueidis.ClientModeCluster {
		return []rueidis.Client{r.admin}
	}
	for _, node := range r.admin.Nodes() {
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if err != nil { // miniredis says that it is a cluster of one, and has no ROLE
			return []rueidis.Client{r.admin}
		}
		if name, _ := role[0].ToString(); name == "master" {
			all = append(all, node)
		}
	}
	return all
}

// keys returns all Redis keys of the place.
func (r *redisEnv) keys(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	for _, node := range r.primaries(ctx, t) {
		names = append(names, r.keysOn(ctx, t, node)...)
	}
	return names
}

func (r *redisEnv) keysOn(ctx context.Context, t *testing.T, node rueidis.Client) (names []string) {
	t.Helper()
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(r.prefix+":*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		names = append(names, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			return names
		}
	}
}

// channels returns all channels of the place that somebody is subscribed to.
func (r *redisEnv) channels(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	for _, node := range r.primaries(ctx, t) {
		for _, question := range []string{"CHANNELS", "SHARDCHANNELS"} {
			found, err := node.Do(ctx, node.B().Arbitrary("PUBSUB", question, r.prefix+":*").Build()).AsStrSlice()
			if err == nil { // not every server knows both
				names = append(names, found...)
			}
		}
	}
	return names
}

// redisKeys returns the Redis keys of one lock, which is in use, by their kind.
func (env *Env) redisKeys(key string) map[byte]string {
	env.Helper()
	names := make(map[byte]string)
	for _, name := range env.redis.keys(env.ctx, env.T) {
		if strings.Contains(name, ":"+key+":") {
			names[name[len(name)-1]] = name
		}
	}
	if len(names) == 0 {
		env.Fatalf("Redis keys of %q: got none", key)
	}
	return names
}

// OpenRedis opens the store of a worker.
func OpenRedis(url, prefix string) (store.Store, error) {
	at := address{url: url}
	if dir := os.Getenv(workerCertificates); dir != "" {
		at.encryption = &servers.Encryption{Dir: dir}
	}
	option, err := at.option()
	if err != nil {
		return nil, err
	}
	return redisstore.Open(option, redisstore.WithPrefix(prefix), redisstore.WithoutLogger(), atOnce)
}
