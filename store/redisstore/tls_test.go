// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/certtest"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// The rights that a user needs besides those in documentedRights, to list, and in
// a Sentinel set and a Cluster.
const (
	rightsToList     = " +scan"
	rightsInSentinel = " +role"
	rightsInCluster  = " +cluster|slots +cluster|shards +asking +spublish +ssubscribe +sunsubscribe +pubsub|shardnumsub +role"
)

// As docs/security.md would have it: encrypted, the servers and the client known
// by their certificates, and a user with the rights that the package comment
// lists and no other.
func TestConformanceWithTheLeastRightsOverTLS(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *encryption) (whole *server, nodes []*server, rights string){
		"standalone": func(t *testing.T, e *encryption) (*server, []*server, string) {
			sv := e.ownServer(t)
			return sv, []*server{sv}, documentedRights + rightsToList
		},
		"sentinel": func(t *testing.T, e *encryption) (*server, []*server, string) {
			sv, nodes := e.ownSentinelSet(t)
			return sv, nodes, documentedRights + rightsToList + rightsInSentinel
		},
		"cluster": func(t *testing.T, e *encryption) (*server, []*server, string) {
			sv, nodes := e.ownCluster(t)
			return sv, nodes, documentedRights + rightsToList + rightsInCluster
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sv, nodes, rights := start(t, newEncryption(t))
			user := sv.locker(t, nodes, rights)
			sv.acquaint(t, long) // once, for all the tests share a prefix
			storetest.Run(t, func(t *testing.T) asynclock.Store { return user.newStore(t) })
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
	sv := newEncryption(t).ownServer(t)
	good := sv.option.TLSConfig
	for name, config := range map[string]*tls.Config{
		"a server of an unknown authority": {Certificates: good.Certificates, RootCAs: x509.NewCertPool()},
		"a server of another name":         {Certificates: good.Certificates, RootCAs: good.RootCAs, ServerName: "elsewhere"},
		"a client without a certificate":   {RootCAs: good.RootCAs},
		"a client without TLS":             nil,
	} {
		option := sv.option
		option.TLSConfig = config
		st, err := Open(option)
		if err == nil {
			st.Close()
			t.Errorf("%s: Open: got no error", name)
		}
	}
}

// locker makes a user with these rights on each node, and returns the server as
// this user sees it.
func (sv *server) locker(t *testing.T, nodes []*server, rights string) *server {
	t.Helper()
	const name, password = "locker", "pa55word-of-locker"
	for _, node := range nodes {
		node.do(t, append([]string{"ACL", "SETUSER", name, "on", ">" + password, "resetkeys", "resetchannels", "-@all", "~" + sv.prefix + ":{*", "&" + sv.prefix + ":*"},
			node.known(t, strings.Fields(rights))...)...)
		node.do(t, "ACL", "LOG", "RESET")
	}
	option := sv.option
	option.Username, option.Password = name, password
	user := *onServer(t, option)
	user.prefix = sv.prefix
	return &user
}

// An encryption is what servers speak nothing but TLS with, to nobody without a
// certificate. Those of a nil one speak to anybody.
type encryption struct {
	files  []string // arguments of a server
	config *tls.Config
}

func newEncryption(t *testing.T) *encryption {
	t.Helper()
	const host = "127.0.0.1"
	ca := certtest.NewAuthority(t)
	dir := t.TempDir()
	authority, pair := filepath.Join(dir, "authority.pem"), filepath.Join(dir, "server.pem")
	ca.WriteFile(t, authority)
	certtest.WritePair(t, pair, ca.Issue(t, host))
	return &encryption{
		files: []string{
			"--tls-ca-cert-file", authority, "--tls-cert-file", pair, "--tls-key-file", pair,
			"--tls-auth-clients", "yes", "--tls-replication", "yes",
		},
		config: &tls.Config{RootCAs: ca.Roots(), Certificates: []tls.Certificate{ca.Issue(t)}},
	}
}

// args are those of a server that listens on a port.
func (e *encryption) args(port string) []string {
	if e == nil {
		return []string{"--port", port}
	}
	return append([]string{"--port", "0", "--tls-port", port}, e.files...)
}

// option is a client's.
func (e *encryption) option(addrs ...string) rueidis.ClientOption {
	option := rueidis.ClientOption{InitAddress: addrs}
	if e != nil {
		option.TLSConfig = e.config
	}
	return option
}

// ownServer starts a server. args are added to its command line.
func (e *encryption) ownServer(t *testing.T, args ...string) *server {
	t.Helper()
	addr := freeAddr(t)
	e.startServer(t, addr, args...)
	return onServer(t, e.option(addr))
}

// startServer starts one at the address. Not every redis-server is built with TLS.
func (e *encryption) startServer(t *testing.T, addr string, args ...string) {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	_, err := tryServer(t, addr, append(e.args(port), args...)...)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "Bad directive"), strings.Contains(err.Error(), "Failed finding TLS support"):
		t.Skip("this redis-server was built without TLS")
	default:
		t.Fatal(err)
	}
}

// ownSentinelSet starts a primary, a replica and a sentinel.
func (e *encryption) ownSentinelSet(t *testing.T) (*server, []*server) {
	t.Helper()
	primary := e.ownServer(t)
	addr := primary.option.InitAddress[0]
	host, port, _ := strings.Cut(addr, ":")
	replica := e.ownServer(t, "--replicaof", host, port)
	sentinel := e.startSentinel(t, addr)
	option := e.option(sentinel)
	option.ForceSingleClient = true
	onServer(t, option).knowsAReplica(t)

	option = e.option(sentinel)
	option.Sentinel = rueidis.SentinelOption{MasterSet: "locks", TLSConfig: option.TLSConfig}
	return onServer(t, option), []*server{primary, replica}
}
