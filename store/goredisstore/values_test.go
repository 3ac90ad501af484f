// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func TestAValueThatCantBeCarriedIsRefused(t *testing.T) {
	t.Parallel()
	addrs := []string{"host:1"}
	for _, c := range []struct {
		field   string
		options any
	}{
		{"DB", &redis.Options{DB: -1}},
		{"Protocol", &redis.Options{Protocol: 4}},
		{"DialTimeout", &redis.Options{DialTimeout: -1}},
		{"IdentitySuffix", &redis.Options{IdentitySuffix: "two words"}},
		{"Network", &redis.Options{Network: "udp"}},
		{"MaintNotificationsConfig", &redis.Options{MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeEnabled}}},
		{"Username", &redis.Options{Username: "somebody"}},
		{"Addr", &redis.Options{Addr: "host"}},
		{"Addr", &redis.Options{Addr: "host:"}},
		{"Addr", &redis.Options{Addr: "redis://user:pa55word@host:1"}},
		{"Addr", redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: addrs}).Options()},
		{"DB", &redis.FailoverOptions{MasterName: "main", SentinelAddrs: addrs, DB: -1}},
		{"MasterName", &redis.FailoverOptions{SentinelAddrs: addrs}},
		{"SentinelAddrs", &redis.FailoverOptions{MasterName: "main"}},
		{"SentinelAddrs", &redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"host:1", ""}}},
		{"SentinelUsername", &redis.FailoverOptions{MasterName: "main", SentinelAddrs: addrs, SentinelUsername: "somebody"}},
		{"Protocol", &redis.FailoverOptions{MasterName: "main", SentinelAddrs: addrs, Protocol: 4}},
		{"Addrs", new(redis.ClusterOptions)},
		{"Addrs", &redis.ClusterOptions{Addrs: []string{"host:1", "host"}}},
		{"Username", &redis.ClusterOptions{Addrs: addrs, Username: "somebody"}},
		{"DB", &redis.UniversalOptions{Addrs: addrs, IsClusterMode: true, DB: 1}},
		{"DB", &redis.UniversalOptions{Addrs: []string{"host:1", "host:2"}, DB: 1}},
		{"Addrs", &redis.UniversalOptions{Addrs: []string{"host"}}},
		{"Addrs", &redis.UniversalOptions{Addrs: []string{"host"}, MasterName: "main"}},
		{"Addrs", &redis.UniversalOptions{Addrs: []string{"host"}, IsClusterMode: true}},
		{"SentinelUsername", &redis.UniversalOptions{MasterName: "main", SentinelUsername: "somebody"}},
	} {
		_, err := translate(c.options)
		wantRefused(t, c.options, c.field, err)
		if err != nil && strings.Contains(err.Error(), "pa55word") {
			t.Errorf("got a password in %q", err)
		}
	}
}

func TestNilOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (*redisstore.Store, error){
		"Options":          func() (*redisstore.Store, error) { return Open[*redis.Options](nil) },
		"UniversalOptions": func() (*redisstore.Store, error) { return Open[*redis.UniversalOptions](nil) },
		"ClusterOptions":   func() (*redisstore.Store, error) { return Open[*redis.ClusterOptions](nil) },
		"FailoverOptions":  func() (*redisstore.Store, error) { return Open[*redis.FailoverOptions](nil) },
	} {
		if _, err := open(); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("nil %s: got %v, want ErrInvalidOption", name, err)
		}
	}
}

// No server can be seen to demand these.
func TestWhereAndHowSoon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options any
		got     func(rueidis.ClientOption) any
		want    any
	}{
		"the default address": {
			new(redis.Options), func(o rueidis.ClientOption) any { return o.InitAddress[0] }, "localhost:6379",
		},
		"the default address of any": {
			new(redis.UniversalOptions), func(o rueidis.ClientOption) any { return o.InitAddress[0] }, "127.0.0.1:6379",
		},
		"the default address of a Cluster": {
			&redis.UniversalOptions{IsClusterMode: true}, func(o rueidis.ClientOption) any { return o.InitAddress[0] }, "127.0.0.1:6379",
		},
		"the default address of a sentinel": {
			&redis.UniversalOptions{MasterName: "main"}, func(o rueidis.ClientOption) any { return o.InitAddress[0] }, "127.0.0.1:26379",
		},
		"sentinels even if a client for a Cluster would ask them": {
			&redis.UniversalOptions{MasterName: "main", IsClusterMode: true}, func(o rueidis.ClientOption) any { return o.Sentinel.MasterSet }, "main",
		},
		"one server is no Cluster": {
			new(redis.Options), func(o rueidis.ClientOption) any { return o.ForceSingleClient }, true,
		},
		"a dial as short as that": {
			&redis.Options{DialTimeout: time.Second}, func(o rueidis.ClientOption) any { return o.Dialer.Timeout }, time.Second,
		},
		"a dial as long as that": {
			&redis.Options{DialTimeout: time.Minute}, func(o rueidis.ClientOption) any { return o.Dialer.Timeout }, time.Minute,
		},
		"a dial of a sentinel": {
			&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{"host:1"}, DialTimeout: time.Minute},
			func(o rueidis.ClientOption) any { return o.Sentinel.Dialer.Timeout }, time.Minute,
		},
		"a dial with go-redis' default": {
			&redis.Options{DialTimeout: 5 * time.Second}, func(o rueidis.ClientOption) any { return o.Dialer.Timeout }, time.Duration(0),
		},
		"silence, as short as a read may be": {
			&redis.Options{ReadTimeout: time.Second, WriteTimeout: 2 * time.Second},
			func(o rueidis.ClientOption) any { return o.ConnWriteTimeout }, time.Second,
		},
		"silence, as short as a write may be": {
			&redis.Options{ReadTimeout: 2 * time.Second, WriteTimeout: time.Second},
			func(o rueidis.ClientOption) any { return o.ConnWriteTimeout }, time.Second,
		},
		"silence, if a read may take longer": {
			&redis.Options{ReadTimeout: time.Minute, WriteTimeout: -1},
			func(o rueidis.ClientOption) any { return o.ConnWriteTimeout }, time.Duration(0),
		},
		"the topology, as often as that": {
			&redis.ClusterOptions{Addrs: []string{"host:1"}, ClusterStateReloadInterval: time.Minute},
			func(o rueidis.ClientOption) any { return o.ClusterOption.ShardsRefreshInterval }, time.Minute,
		},
		"the topology, if that makes no sense": {
			&redis.ClusterOptions{Addrs: []string{"host:1"}, ClusterStateReloadInterval: -1},
			func(o rueidis.ClientOption) any { return o.ClusterOption.ShardsRefreshInterval }, time.Duration(0),
		},
	} {
		option, err := translate(c.options)
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
			continue
		}
		if got := c.got(option); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Options stay as they are: go-redis' own methods fill in addresses.
func TestOptionsAreNotChanged(t *testing.T) {
	t.Parallel()
	for _, o := range []*redis.UniversalOptions{{}, {IsClusterMode: true}, {MasterName: "main"}} {
		before := *o
		if _, err := translate(o); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if !reflect.DeepEqual(*o, before) {
			t.Errorf("got %+v, want it as it was: %+v", *o, before)
		}
	}
	config := new(tls.Config)
	o := &redis.Options{TLSConfig: config}
	if _, err := translate(o); err != nil || o.Addr != "" || o.Network != "" || o.TLSConfig != config {
		t.Errorf("got %+v, %v; want it as it was", o, err)
	}
}
