// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A door is an address behind which there is a server, or whatever a fault puts there.
type door struct {
	net.Listener

	mu   sync.Mutex
	open func(net.Conn)
	in   []net.Conn
}

func newDoor(t *testing.T, open func(net.Conn)) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Listener: l, open: open}
	var visits sync.WaitGroup
	visits.Go(func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.in = append(d.in, conn)
			open := d.open
			d.mu.Unlock()
			visits.Go(func() { // ends with the connection
				defer conn.Close()
				open(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		d.change(nil)
		visits.Wait()
	})
	return d
}

// change ends all connections, and puts something else there.
func (d *door) change(open func(net.Conn)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = open
	for _, conn := range d.in {
		conn.Close()
	}
	d.in = nil
}

// to leads to a server.
func to(address string, encryption *tls.Config) func(net.Conn) {
	return func(conn net.Conn) {
		if encryption != nil {
			conn = tls.Server(conn, encryption)
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
		if err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.Copy(server, conn)
			server.Close()
		})
		_, _ = io.Copy(conn, server)
		conn.Close()
		both.Wait()
	}
}

func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// says answers each command so.
func says(answer string) func(net.Conn) {
	return func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			words, _ := strconv.Atoi(strings.Trim(line, "*\r\n"))
			for range 2 * words {
				if _, err := in.ReadString('\n'); err != nil {
					return
				}
			}
			_, _ = io.WriteString(conn, answer+"\r\n")
		}
	}
}

// nameOf is how the table names an error.
func nameOf(err error) string {
	for name, known := range map[string]error{"ErrInvalidOption": store.ErrInvalidOption, "ErrDenied": store.ErrDenied} {
		if errors.Is(err, known) {
			return name
		}
	}
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, store.ErrOutcomeUnknown):
		return "ErrOutcomeUnknown"
	case errors.Is(err, store.ErrUnreachable):
		return "ErrUnreachable"
	}
	return "the answer"
}

// soon is how long silence lasts here.
const soon = 500 * time.Millisecond

// A setting is what all drivers are told.
type setting struct {
	topology string // redis, sentinel, cluster
	address  string
	name     string // of the client
	tls      *tls.Config
	dial     error // of a dialer
	provide  error // of a provider of credentials
}

func (s *setting) rueidis() rueidis.ClientOption {
	o := rueidis.ClientOption{InitAddress: []string{s.address}, ClientName: s.name, TLSConfig: s.tls, ForceSingleClient: s.topology == "redis", ConnWriteTimeout: soon}
	o.Dialer.Timeout = soon
	if s.topology == "sentinel" {
		o.Sentinel = rueidis.SentinelOption{MasterSet: "primary", TLSConfig: s.tls}
	}
	if s.dial != nil {
		o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, s.dial }
	}
	if s.provide != nil {
		o.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{}, s.provide
		}
	}
	return o
}

func (s *setting) goRedis() *redis.UniversalOptions {
	o := &redis.UniversalOptions{Addrs: []string{s.address}, ClientName: s.name, TLSConfig: s.tls, IsClusterMode: s.topology == "cluster", ReadTimeout: soon, DialTimeout: soon}
	if s.topology == "sentinel" {
		o.MasterName = "primary"
	}
	if s.dial != nil {
		o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, s.dial }
	}
	if s.provide != nil {
		o.CredentialsProviderContext = func(context.Context) (user, password string, err error) { return "", "", s.provide }
	}
	return o
}

// drivers open a store.
var faultyDrivers = []struct {
	name string
	open func(t *testing.T, s *setting) (*redisstore.Store, error)
}{
	{"rueidis", func(_ *testing.T, s *setting) (*redisstore.Store, error) {
		return redisstore.Open(s.rueidis(), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
	}},
	{"Open", func(_ *testing.T, s *setting) (*redisstore.Store, error) {
		return Open(s.goRedis(), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
	}},
	{"New", func(t *testing.T, s *setting) (*redisstore.Store, error) {
		client := redis.NewUniversalClient(s.goRedis())
		t.Cleanup(func() { client.Close() })
		return New(client, redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
	}},
}

// try opens a store, and makes an attempt. When it is open, then changes the world. A command that is sent on a
// connection that has just ended may have arrived, so the next attempt counts.
func try(t *testing.T, driver int, s *setting, then func()) (opened, locked string) {
	t.Helper()
	st, err := faultyDrivers[driver].open(t, s)
	if opened = nameOf(err); err != nil {
		return opened, ""
	}
	defer st.Close()
	c := redistest.Join(t, st, store.EventResync, store.EventDisconnected)
	if then != nil {
		then()
		c.Acquire(redistest.Attempt("key", "owner"))
	}
	return opened, nameOf(c.Acquire(redistest.Attempt("key", "owner")).Err)
}

// A fault is what is behind the address, before and after.
type fault struct {
	topology, name string
	setting        setting
	before, after  func(net.Conn) // nil: the same
	want           string
}

// cell is what a driver makes of a fault: the error of Open, and that of TryLock. If it can't be open before the fault, there
// is only one of them.
func (f *fault) cell(t *testing.T, driver int) string {
	t.Helper()
	s := f.setting
	isNew := faultyDrivers[driver].name == "New"
	at := func(behind func(net.Conn), then func(*door)) (opened, locked string) {
		d := newDoor(t, behind)
		s.address = d.Addr().String()
		if then == nil {
			return try(t, driver, &s, nil)
		}
		return try(t, driver, &s, func() { then(d) })
	}
	opened, locked := at(f.after, nil)
	if f.before == nil {
		return cmp.Or(locked, opened)
	}
	_, later := at(f.before, func(d *door) { d.change(f.after) })
	if isNew {
		return later
	}
	return opened + ", " + later
}

// The page has a table of what a fault makes of Open and of TryLock, whose attempts these are. Nothing was sent in any of these, so none is an
// ErrOutcomeUnknown.
func TestFaultsHaveTheirErrors(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	authority, stranger := kit.NewAuthority(t), kit.NewAuthority(t)
	client := &tls.Config{RootCAs: authority.Roots(), MinVersion: tls.VersionTLS12}
	server := func(issuer *kit.Authority, host string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{issuer.Issue(t, host)}, ClientCAs: authority.Roots(), MinVersion: tls.VersionTLS12}
	}
	good := server(authority, "127.0.0.1")
	mutual := good.Clone()
	mutual.ClientAuth = tls.RequireAndVerifyClientCert
	plain, encrypted := to(sv.Addr, nil), to(sv.Addr, good)
	gone := func(conn net.Conn) { conn.Close() }
	ours, tlsOnly := errors.New("ours"), setting{topology: "redis", tls: client}
	one, sentinel, cluster := setting{topology: "redis"}, setting{topology: "sentinel"}, setting{topology: "cluster"}
	page := kit.ReadFile(t, "docs/stores/goredis.md")
	for _, f := range []fault{
		{"redis", "each connection is closed", one, plain, gone, "ErrUnreachable"},
		{"redis", "says nothing", one, plain, silent, "ErrUnreachable"},
		{"redis", "`-LOADING`", one, plain, says("-LOADING Redis is loading"), "ErrUnreachable"},
		{"redis", "`-DENIED`, the protected mode", one, plain, says("-DENIED Redis is running in protected mode"), "ErrDenied"},
		{"redis", "`-NOAUTH`", one, plain, says("-NOAUTH Authentication required."), "ErrDenied"},
		{"redis", "`-ERR` and other words", one, plain, says("-ERR odd"), "ErrUnreachable"},
		{"redis", "a client's name with a space", setting{topology: "redis", name: "a b"}, nil, plain, "ErrInvalidOption"},
		{"redis", "the dialer's error", setting{topology: "redis", dial: ours}, nil, plain, "ErrUnreachable"},
		{"redis", "the error of a provider of credentials", setting{topology: "redis", provide: ours}, nil, plain, "ErrUnreachable"},
		{"TLS", "a certificate of another authority", tlsOnly, encrypted, to(sv.Addr, server(stranger, "127.0.0.1")), "ErrUnreachable"},
		{"TLS", "a certificate for another name", tlsOnly, encrypted, to(sv.Addr, server(authority, "other.example")), "ErrUnreachable"},
		{"TLS", "the client's certificate is missing", tlsOnly, encrypted, to(sv.Addr, mutual), "ErrUnreachable"},
		{"TLS", "the port speaks no TLS", tlsOnly, encrypted, plain, "ErrUnreachable"},
		{"TLS", "the port speaks TLS, and the client does not", one, plain, encrypted, "ErrUnreachable"},
		{"sentinel", "no such primary", sentinel, nil, says("*-1"), "ErrUnreachable"},
		{"sentinel", "no sentinel", sentinel, nil, plain, "ErrUnreachable"},
		{"sentinel", "says nothing", sentinel, nil, silent, "ErrUnreachable"},
		{"cluster", "no Cluster", cluster, nil, plain, "ErrUnreachable"},
		{"cluster", "says nothing", cluster, nil, silent, "ErrUnreachable"},
	} {
		t.Run(f.topology+" "+f.name, func(t *testing.T) {
			t.Parallel()
			row := "| " + f.topology + " | " + f.name + " |"
			for i := range faultyDrivers {
				cell := f.cell(t, i)
				for got := range strings.SplitSeq(cell, ", ") {
					if got != f.want && got != "the answer" && (got != "none" || f.name != "no Cluster") {
						t.Errorf("%s: got %s, want %s", faultyDrivers[i].name, cell, f.want)
					}
				}
				row += " " + cell + " |"
			}
			if !strings.Contains(page, row+"\n") {
				t.Errorf("docs/stores/goredis.md has no row\n%s", row)
			}
		})
	}
}

// A command that go-redis has written may have been sent.
func TestALostAnswerLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	d := newDoor(t, to(sv.Addr, nil))
	client := redis.NewClient(&redis.Options{Addr: d.Addr().String(), ReadTimeout: time.Second})
	defer client.Close()
	c := redistest.Join(t, newStore(t, client))
	c.Hold("key", "owner")
	if err := sv.Pause(); err != nil {
		t.Fatal(err)
	}
	defer sv.Resume() //nolint:errcheck // the server ends anyway
	if got := c.Acquire(redistest.Attempt("another", "owner")).Err; !errors.Is(got, store.ErrOutcomeUnknown) {
		t.Errorf("got %v, want ErrOutcomeUnknown", got)
	}
}
