// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// elsewhere is an address that only a dialer knows.
const elsewhere = "elsewhere.invalid:1"

// ofLockedServer are for one server with one user.
func ofLockedServer(t *testing.T) []set {
	t.Helper()
	dir, err := os.MkdirTemp("", "goredis") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	sv := redistest.Start(t, servers.Config{Args: []string{"--unixsocket", socket}})
	lockUp(t, sv, user, password)
	base := func() *redis.Options { return &redis.Options{Addr: sv.Addr, Username: user, Password: password} }
	with := func(change func(*redis.Options)) func() any {
		return func() any {
			o := base()
			change(o)
			return o
		}
	}
	spoil := func(change func(*redis.Options)) func(any) { return func(o any) { change(o.(*redis.Options)) } }
	to := func(address string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	}
	shows := func(words []string, text string) func(*testing.T) bool {
		return func(t *testing.T) bool {
			said, err := sv.Text(t.Context(), words...)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(said, text)
		}
	}
	return append([]set{
		{
			name: "user and password", proves: []string{"Addr", "Username", "Password"},
			options: func() any { return base() },
			spoil:   spoil(func(o *redis.Options) { o.Password = "wrong" }),
		},
		{
			name: "password of the default user", proves: []string{"Username"},
			options: func() any { return base() },
			spoil:   spoil(func(o *redis.Options) { o.Username = "" }),
		},
		{
			name: "URL", options: func() any {
				o, err := redis.ParseURL("redis://" + user + ":" + password + "@" + sv.Addr + "/2")
				if err != nil {
					panic(err)
				}
				return o
			},
			shows: shows([]string{"INFO", "keyspace"}, "db2:"),
		},
		{
			name: "provider of credentials", proves: []string{"CredentialsProvider"},
			options: with(func(o *redis.Options) { o.Username, o.Password, o.CredentialsProvider = "", "wrong", provider }),
			spoil:   spoil(func(o *redis.Options) { o.CredentialsProvider = nil }),
		},
		{
			name: "provider of credentials with a context", proves: []string{"CredentialsProviderContext"},
			options: with(func(o *redis.Options) {
				o.CredentialsProvider = func() (string, string) { return user, "wrong" }
				o.CredentialsProviderContext = providerContext
			}),
			spoil: spoil(func(o *redis.Options) { o.CredentialsProviderContext = wrong }),
		},
		{
			name: "provider of a user without a password",
			// As in go-redis, the server hears of no user, and this one lets in nobody else.
			options: with(func(*redis.Options) {}),
			spoil:   spoil(func(o *redis.Options) { o.CredentialsProvider = func() (string, string) { return user, "" } }),
		},
		{
			name: "database", proves: []string{"DB"},
			options: with(func(o *redis.Options) { o.DB = 5 }),
			shows:   shows([]string{"INFO", "keyspace"}, "db5:"),
		},
		{
			name: "socket", proves: []string{"Network"},
			options: with(func(o *redis.Options) { o.Network, o.Addr = "unix", socket }),
			spoil:   spoil(func(o *redis.Options) { o.Network = "tcp" }),
		},
		{
			name:    "socket by its path alone",
			options: with(func(o *redis.Options) { o.Addr = socket }),
			spoil:   spoil(func(o *redis.Options) { o.Addr += "-of-another" }),
		},
		{
			name: "dialer", proves: []string{"Dialer"},
			options: with(func(o *redis.Options) { o.Addr, o.Dialer = elsewhere, to(sv.Addr) }),
			spoil:   spoil(func(o *redis.Options) { o.Dialer = nil }),
		},
		{
			name: "name of the client", proves: []string{"ClientName"},
			options: with(func(o *redis.Options) { o.ClientName = "billing" }),
			shows:   shows([]string{"CLIENT", "LIST"}, "name=billing"),
		},
		{
			name: "what a client has filled in",
			options: func() any {
				client := redis.NewClient(base())
				defer client.Close()
				return client.Options()
			},
			spoil: spoil(func(o *redis.Options) { o.Password = "wrong" }),
		},
		{
			name: "universal options of one server", proves: []string{"Addrs"},
			options: func() any {
				return &redis.UniversalOptions{Addrs: []string{sv.Addr}, Username: user, Password: password}
			},
			spoil: func(o any) { o.(*redis.UniversalOptions).Username = "" },
		},
	}, ofWhatIsSaid(with, to(sv.Addr))...)
}

// A recorder notes what the connections that it dials are told to send.
type recorder struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.said.String(), text)
}

type recordedConn struct {
	net.Conn

	by *recorder
}

func (c recordedConn) Write(b []byte) (int, error) {
	c.by.mu.Lock()
	c.by.said.Write(b)
	c.by.mu.Unlock()
	return c.Conn.Write(b)
}

// ofWhatIsSaid are those of which servers before Redis 7.2 show nothing.
func ofWhatIsSaid(with func(func(*redis.Options)) func() any, dial func(context.Context, string, string) (net.Conn, error)) []set {
	var sets []set
	for _, c := range []struct {
		name, proves string
		change       func(*redis.Options)
		said, unsaid string
	}{
		{"protocol 3", "Protocol", func(o *redis.Options) { o.Protocol = 3 }, "HELLO\r\n$1\r\n3\r\n", "HELLO\r\n$1\r\n2\r\n"},
		{"protocol 2", "Protocol", func(o *redis.Options) { o.Protocol = 2 }, "HELLO\r\n$1\r\n2\r\n", "HELLO\r\n$1\r\n3\r\n"},
		{"suffix of the library's name", "IdentitySuffix", func(o *redis.Options) { o.IdentitySuffix = "billing" }, "rueidis(billing)", "\r\nrueidis\r\n"},
		{"no name of the library", "DisableIdentity", func(o *redis.Options) { o.DisableIdentity = true }, "HELLO", "SETINFO"},
		{
			"no name of the library, misspelled", "DisableIndentity",
			func(o *redis.Options) { o.DisableIndentity = true }, //nolint:staticcheck // deprecated, but somebody may have set it
			"HELLO", "SETINFO",
		},
	} {
		var r recorder
		sets = append(sets, set{
			name: c.name, proves: []string{c.proves},
			options: with(func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := dial(ctx, network, address)
					return recordedConn{conn, &r}, err
				}
				c.change(o)
			}),
			shows: func(*testing.T) bool { return r.has(c.said) && !r.has(c.unsaid) },
		})
	}
	return sets
}

// ofEncryptedServer are for one server that speaks TLS, to clients with a certificate.
func ofEncryptedServer(t *testing.T) []set {
	t.Helper()
	encryption := redistest.NewEncryption(t)
	sv := redistest.Start(t, servers.Config{Encryption: encryption})
	config := clientTLS(t, encryption)
	base := func() *redis.Options { return &redis.Options{Addr: sv.Addr, TLSConfig: config} }
	bare := func(o any) { o.(*redis.Options).TLSConfig = &tls.Config{RootCAs: config.RootCAs} }
	return []set{
		{name: "TLS", proves: []string{"TLSConfig"}, options: func() any { return base() }, spoil: bare},
		{
			name:    "TLS by the dialer",
			options: func() any { return &redis.Options{Addr: elsewhere, Dialer: encrypted(config, sv.Addr)} },
			spoil:   func(o any) { o.(*redis.Options).Dialer = encrypted(&tls.Config{RootCAs: config.RootCAs}, sv.Addr) },
		},
		{
			name: "TLS over another network", proves: []string{"Network"},
			options: func() any {
				o := base()
				o.Network = "tcp4"
				return o
			},
			spoil: bare,
		},
		{
			name: "TLS as a client has filled it in",
			options: func() any {
				client := redis.NewClient(base())
				defer client.Close()
				return client.Options()
			},
			spoil: func(o any) { o.(*redis.Options).Dialer = nil; bare(o) },
		},
	}
}

func clientTLS(t *testing.T, encryption *servers.Encryption) *tls.Config {
	t.Helper()
	config, err := encryption.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// encrypted dials that address with TLS, whatever it is asked for.
func encrypted(config *tls.Config, address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		dialer := tls.Dialer{Config: config}
		return dialer.DialContext(ctx, network, address)
	}
}
