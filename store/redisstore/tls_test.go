// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// The rights that a user needs besides those in documentedRights, to list, and in
// a Sentinel set and a Cluster.
const (
	rightsToList     = " +scan"
	rightsInSentinel = " +role"
	rightsInCluster  = " +cluster|slots +cluster|shards +asking +spublish +ssubscribe +pubsub|shardnumsub +role"
)

// As docs/security.md would have it: encrypted, the servers and the client known
// by their certificates, and a user with the rights that the package comment
// lists and no other. TLS and rights change who may say what, and not the protocol, so on
// most days the Cluster will do, where the rights are those of all and some more. Each
// night has all three.
func TestConformanceWithTheLeastRightsOverTLS(t *testing.T) {
	t.Parallel()
	topologies := map[string]func(*testing.T, servers.Config) (whole *server, nodes []*server, rights string){
		"standalone": func(t *testing.T, c servers.Config) (*server, []*server, string) {
			sv := startServer(t, c)
			return sv, []*server{sv}, documentedRights + rightsToList
		},
		"sentinel": func(t *testing.T, c servers.Config) (*server, []*server, string) {
			sv, nodes := startSentinelSet(t, c)
			return sv, nodes, documentedRights + rightsToList + rightsInSentinel
		},
		"cluster": func(t *testing.T, c servers.Config) (*server, []*server, string) {
			sv, nodes := startCluster(t, c, 3)
			return sv, nodes, documentedRights + rightsToList + rightsInCluster
		},
	}
	if !kit.Nightly() {
		maps.DeleteFunc(topologies, func(name string, _ func(*testing.T, servers.Config) (*server, []*server, string)) bool {
			return name != "cluster"
		})
	}
	for name, start := range topologies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sv, nodes, rights := start(t, servers.Config{Encryption: redistest.NewEncryption(t)})
			user := sv.as(t, "locker", rights, nodes...)
			sv.acquaint(t, long) // once, for all the tests share a prefix
			storetest.Run(t, func(t *testing.T) store.Store { return user.newStore(t) })
			t.Cleanup(func() {
				for _, node := range nodes {
					node.nothingDenied(t)
				}
			})
		})
	}
}

// Nobody talks to a server that can't prove who it is, nor a server to a client.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	sv := startServer(t, servers.Config{Encryption: redistest.NewEncryption(t)})
	good := sv.Option.TLSConfig
	for name, config := range map[string]*tls.Config{
		"a server of an unknown authority": {Certificates: good.Certificates, RootCAs: x509.NewCertPool()},
		"a server of another name":         {Certificates: good.Certificates, RootCAs: good.RootCAs, ServerName: "elsewhere"},
		"a client without a certificate":   {RootCAs: good.RootCAs},
		"a client without TLS":             nil,
	} {
		option := sv.Option
		option.TLSConfig = config
		st, err := Open(option)
		if err == nil {
			st.Close()
			t.Errorf("%s: Open: got no error", name)
		}
	}
}
