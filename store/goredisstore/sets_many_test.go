// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// ofLockedSentinel are for a Sentinel set by TLS. The sentinels have another user than the others.
func ofLockedSentinel(t *testing.T) []set {
	t.Helper()
	encryption := redistest.NewEncryption(t)
	d := redistest.StartSentinel(t, servers.Config{Encryption: encryption})
	sentinel := d.Sentinels[0]
	for _, words := range [][]string{
		{"SENTINEL", "SET", servers.MasterSet, "auth-user", user},
		{"SENTINEL", "SET", servers.MasterSet, "auth-pass", password},
	} {
		if err := sentinel.Do(t.Context(), words...); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range d.Nodes {
		for _, words := range [][]string{{"CONFIG", "SET", "masteruser", user}, {"CONFIG", "SET", "masterauth", password}} {
			if err := node.Do(t.Context(), words...); err != nil {
				t.Fatal(err)
			}
		}
		lockUp(t, node, user, password)
	}
	lockUp(t, sentinel, sentinelUser, sentinelSecret)

	config := clientTLS(t, encryption)
	base := func() *redis.FailoverOptions {
		return &redis.FailoverOptions{
			MasterName: servers.MasterSet, SentinelAddrs: []string{sentinel.Addr},
			SentinelUsername: sentinelUser, SentinelPassword: sentinelSecret,
			Username: user, Password: password, TLSConfig: config,
		}
	}
	with := func(change func(*redis.FailoverOptions)) func() any {
		return func() any {
			o := base()
			change(o)
			return o
		}
	}
	spoil := func(change func(*redis.FailoverOptions)) func(any) {
		return func(o any) { change(o.(*redis.FailoverOptions)) }
	}
	unchanged := with(func(*redis.FailoverOptions) {})
	return []set{
		{
			name: "Sentinel", proves: []string{"SentinelAddrs", "MasterName"},
			options: unchanged, spoil: spoil(func(o *redis.FailoverOptions) { o.MasterName = "another" }),
		},
		{
			name: "user of the sentinels", proves: []string{"SentinelUsername", "SentinelPassword"},
			options: unchanged, spoil: spoil(func(o *redis.FailoverOptions) { o.SentinelPassword = "wrong" }),
		},
		{
			name:    "user of the primary",
			options: unchanged, spoil: spoil(func(o *redis.FailoverOptions) { o.Password = "wrong" }),
		},
		{
			name:    "TLS of sentinels and primary",
			options: unchanged, spoil: spoil(func(o *redis.FailoverOptions) { o.TLSConfig = &tls.Config{RootCAs: config.RootCAs} }),
		},
		{
			name: "provider of credentials, which the sentinels never see", options: with(func(o *redis.FailoverOptions) {
				o.Username, o.Password, o.CredentialsProviderContext = "", "wrong", providerContext
			}),
			spoil: spoil(func(o *redis.FailoverOptions) { o.CredentialsProviderContext = wrong }),
		},
		{
			name: "provider of credentials and a dialer", options: with(func(o *redis.FailoverOptions) {
				o.CredentialsProvider, o.TLSConfig = provider, nil
				o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
					return encrypted(config, address)(ctx, network, address)
				}
			}),
			spoil: spoil(func(o *redis.FailoverOptions) { o.SentinelPassword = "wrong" }),
		},
		{
			name: "database behind Sentinel", options: with(func(o *redis.FailoverOptions) { o.DB = 7 }),
			shows: func(t *testing.T) bool {
				facts, err := d.Nodes[0].Facts(t.Context(), "INFO", "keyspace")
				return err == nil && facts["db7"] != ""
			},
		},
		{
			name: "universal options of a Sentinel set", proves: []string{"Addrs"}, options: func() any {
				return &redis.UniversalOptions{
					MasterName: servers.MasterSet, Addrs: []string{sentinel.Addr},
					SentinelUsername: sentinelUser, SentinelPassword: sentinelSecret,
					Username: user, Password: password, TLSConfig: config,
				}
			},
			spoil: func(o any) { o.(*redis.UniversalOptions).SentinelPassword = "wrong" },
		},
	}
}

// ofLockedCluster are for a Cluster by TLS with one user.
func ofLockedCluster(t *testing.T) []set {
	t.Helper()
	encryption := redistest.NewEncryption(t)
	d := redistest.StartCluster(t, servers.Config{Encryption: encryption}, 3)
	for _, node := range d.Nodes {
		lockUp(t, node, user, password)
	}
	config := clientTLS(t, encryption)
	base := func() *redis.ClusterOptions {
		return &redis.ClusterOptions{
			Addrs: []string{d.Nodes[1].Addr, d.Nodes[2].Addr}, Username: user, Password: password, TLSConfig: config,
		}
	}
	universal := func() *redis.UniversalOptions {
		return &redis.UniversalOptions{
			Addrs: []string{d.Nodes[0].Addr}, IsClusterMode: true, Username: user, Password: password, TLSConfig: config,
		}
	}
	spoil := func(o any) { o.(*redis.ClusterOptions).Password = "wrong" }
	return []set{
		{name: "Cluster", proves: []string{"Addrs"}, options: func() any { return base() }, spoil: spoil},
		{
			name: "TLS of a Cluster", options: func() any { return base() },
			spoil: func(o any) { o.(*redis.ClusterOptions).TLSConfig = nil },
		},
		{
			name: "what a client of a Cluster has filled in", options: func() any {
				client := redis.NewClusterClient(base())
				defer client.Close()
				return client.Options()
			},
			spoil: spoil,
		},
		{
			name: "provider of credentials for a Cluster", options: func() any {
				o := base()
				o.Password, o.CredentialsProviderContext = "wrong", providerContext
				return o
			},
			spoil: func(o any) { o.(*redis.ClusterOptions).CredentialsProviderContext = wrong },
		},
		{
			name: "universal options of a Cluster, all addresses", options: func() any {
				o := universal()
				o.IsClusterMode = false
				for _, node := range d.Nodes[1:] {
					o.Addrs = append(o.Addrs, node.Addr)
				}
				return o
			},
			spoil: func(o any) { o.(*redis.UniversalOptions).Password = "wrong" },
		},
		{
			name: "universal options of a Cluster, one address", proves: []string{"IsClusterMode"},
			options: func() any { return universal() },
			shows:   func(*testing.T) bool { return usesCluster(universal()) },
		},
	}
}

func usesCluster(o *redis.UniversalOptions) bool {
	option, err := translate(o)
	return err == nil && !option.ForceSingleClient
}
