// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A set is options that a server demands.
type set struct {
	name    string
	proves  []string   // the carried fields without which this test would fail
	options func() any // anew each time
	// Either: what the server refuses.
	spoil func(options any)
	// Or: what the server shows while a key is held.
	shows func(t *testing.T) bool
}

// TestOptionsReachTheServer locks a key with each set, and fails to with the same set when what the
// server demands is missing.
func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	sets := slices.Concat(ofLockedServer(t), ofEncryptedServer(t), ofLockedSentinel(t), ofLockedCluster(t))
	proven := []string{"DialTimeout", "ReadTimeout", "WriteTimeout", "ClusterStateReloadInterval"} // by TestWhereAndHowSoon
	for _, s := range sets {
		proven = append(proven, s.proves...)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if err := lock(t, s.options(), s.shows); err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if s.spoil == nil {
				return
			}
			spoiled := s.options()
			s.spoil(spoiled)
			if lock(t, spoiled, nil) == nil {
				t.Error("without what the server demands: got no error")
			}
		})
	}
	for _, field := range carriedFields {
		if !slices.Contains(proven, field) {
			t.Errorf("%s: no set proves that it is carried", field)
		}
	}
	if len(sets) < 20 {
		t.Errorf("got %d sets of options, want 20 at least", len(sets))
	}
}

// lock takes a key of its own with the options, and gives it back.
func lock(t *testing.T, options any, shows func(*testing.T) bool) error {
	t.Helper()
	st, err := open(options)
	if err != nil {
		return err
	}
	defer st.Close()
	c := redistest.Join(t, st)
	key := "key-" + uuid.NewString()
	got := c.Acquire(redistest.Attempt(key, "owner"))
	if got.Err == nil && shows != nil && !shows(t) {
		return errors.New("the server does not show it")
	}
	return got.Err
}

func open(options any) (*redisstore.Store, error) {
	opts := []redisstore.Option{redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger()}
	switch o := options.(type) {
	case *redis.Options:
		return Open(o, opts...)
	case *redis.UniversalOptions:
		return Open(o, opts...)
	case *redis.ClusterOptions:
		return Open(o, opts...)
	case *redis.FailoverOptions:
		return Open(o, opts...)
	}
	panic("no options of go-redis")
}

// The only user of servers that demand one, and the sentinels' own.
const (
	user, password               = "locker", "pa55word-of-locker"
	sentinelUser, sentinelSecret = "watcher", "pa55word-of-watcher"
)

// lockUp leaves a server to one user. Connections that are open stay as they are.
func lockUp(t *testing.T, sv *servers.Redis, name, secret string) {
	t.Helper()
	for _, words := range [][]string{
		{"ACL", "SETUSER", name, "on", ">" + secret, "allkeys", "allchannels", "+@all"},
		{"ACL", "SETUSER", "default", "off"},
	} {
		if err := sv.Do(t.Context(), words...); err != nil {
			t.Fatal(err)
		}
	}
}

func provider() (string, string) { return user, password }

func providerContext(ctx context.Context) (string, string, error) { return user, password, ctx.Err() }

func wrong(context.Context) (string, string, error) { return user, "wrong", nil }
