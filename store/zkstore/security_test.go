// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/asynclock"
)

// What a user creates is that user's only.
func TestNodesBelongToTheirUser(t *testing.T) {
	t.Parallel()
	root := newRoot()
	ours := locks(t, open(t, root, WithDigest("us", "secret")))
	lease := lock(t, ours, "key")
	acl, _, err := raw(t, servers(t)).GetACL(root)
	if err != nil && !errors.Is(err, zk.ErrNoAuth) {
		t.Fatal(err)
	}
	for _, a := range acl {
		if a.Scheme != "digest" || !strings.HasPrefix(a.ID, "us:") {
			t.Errorf("access control list: got %+v, want one for the user only", acl)
		}
	}
	for name, opts := range map[string][]Option{
		"nobody":             nil,
		"another user":       {WithDigest("them", "secret")},
		"the wrong password": {WithDigest("us", "guess")},
	} {
		theirs := locks(t, open(t, root, opts...))
		if _, err := theirs.TryLock(t.Context(), "key"); !errors.Is(err, asynclock.ErrDenied) {
			t.Errorf("TryLock by %s: got %v, want ErrDenied", name, err)
		}
		if _, err := theirs.Lock(t.Context(), "another key"); !errors.Is(err, asynclock.ErrDenied) {
			t.Errorf("Lock by %s: got %v, want ErrDenied", name, err)
		}
		if _, err := theirs.ForceUnlock(t.Context(), "key"); !errors.Is(err, asynclock.ErrDenied) {
			t.Errorf("ForceUnlock by %s: got %v, want ErrDenied", name, err)
		}
	}
	again := locks(t, open(t, root, WithDigest("us", "secret")))
	if _, err := again.TryLock(t.Context(), "key"); !errors.Is(err, asynclock.ErrHeld) {
		t.Errorf("TryLock by the same user: got %v, want ErrHeld", err)
	}
	unlock(t, lease)
}

// A user is known again after a reconnection.
func TestCredentialsOutliveAConnection(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	c := locks(t, open(t, root, WithDigest("us", "secret"), WithDialer(w.dial)))
	unlock(t, lock(t, c, "key"))
	w.cut()
	w.mend()
	unlock(t, lock(t, c, "key"))
}

func TestAListOfOnesOwn(t *testing.T) {
	t.Parallel()
	root := newRoot()
	acl := []zk.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}}
	c := locks(t, open(t, root, WithACL(acl)))
	lease := lock(t, c, "key")
	got, _, err := raw(t, servers(t)).GetACL(root + "/key")
	if err != nil || len(got) != 1 || got[0] != acl[0] {
		t.Errorf("access control list: got %+v, %v, want %+v", got, err, acl)
	}
	unlock(t, lease)
}

// The server of this test speaks TLS, in front of a ZooKeeper that does not.
func TestTLS(t *testing.T) {
	t.Parallel()
	addr, roots := encrypt(t, servers(t)[0])
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	addr = net.JoinHostPort("localhost", port) // which the certificate is for
	st := openOn(t, []string{addr}, newRoot(), WithTLS(&tls.Config{RootCAs: roots}))
	unlock(t, lock(t, locks(t, st), "key"))

	if testing.Short() {
		return // the rest waits for Open's patience
	}
	_, err = Open([]string{addr}, WithTLS(&tls.Config{RootCAs: x509.NewCertPool()}))
	var unknown x509.UnknownAuthorityError
	if !errors.Is(err, asynclock.ErrUnreachable) || !errors.As(err, &unknown) {
		t.Errorf("Open with a certificate that nobody vouches for: got %v, want ErrUnreachable, and why", err)
	}
}

// encrypt starts a server that takes TLS off what it passes on. It returns its
// address and what vouches for its certificate.
func encrypt(t *testing.T, target string) (string, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { // after the stores are closed, which ends their connections
		listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { pass(client, target) })
		}
	})
	return listener.Addr().String(), roots
}

// pass passes bytes on, both ways, until either end closes.
func pass(client net.Conn, target string) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() { // ends with either connection
		defer close(done)
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	_, _ = io.Copy(server, client)
	server.Close()
	<-done
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Option{
		"nil":                      nil,
		"relative root":            WithRoot("root"),
		"root with an end":         WithRoot("/root/"),
		"the root of all":          WithRoot("/"),
		"no way":                   WithKeyToPath(nil, nil),
		"session too short":        WithSessionTimeout(time.Millisecond),
		"session too long":         WithSessionTimeout(48 * time.Hour),
		"no tick":                  WithTickTime(0),
		"no user":                  WithDigest("", "x"),
		"user with a colon":        WithDigest("a:b", "x"),
		"no access control":        WithACL(nil),
		"no TLS":                   WithTLS(nil),
		"no dialer":                WithDialer(nil),
		"no logger":                WithLogger(nil),
		"only the way there":       WithKeyToPath(func(key string) string { return "/" + key }, nil),
		"only the way back":        WithKeyToPath(nil, func(string) (string, bool) { return "", false }),
		"a root that Java refuses": WithRoot("/a//b"),
	} {
		if _, err := Open([]string{"127.0.0.1:1"}, o); !errors.Is(err, asynclock.ErrBadOption) {
			t.Errorf("%s: got %v, want ErrBadOption", name, err)
		}
	}
	if _, err := Open(nil); !errors.Is(err, asynclock.ErrBadOption) {
		t.Errorf("no servers: got %v, want ErrBadOption", err)
	}
}

// Keys can be anywhere.
func TestKeysWhereTheApplicationWantsThem(t *testing.T) {
	t.Parallel()
	root, conn := newRoot(), raw(t, servers(t))
	c := locks(t, open(t, root, WithLogger(slog.New(slog.DiscardHandler)), WithKeyToPath(
		func(key string) string { return root + "/locks/" + strings.ToUpper(key) },
		func(path string) (string, bool) {
			name, ok := strings.CutPrefix(path, root+"/locks/")
			return strings.ToLower(name), ok
		})))
	lease := lock(t, c, "key")
	if exists, _, err := conn.Exists(root + "/locks/KEY"); err != nil || !exists {
		t.Errorf("the lock's path: got %v, %v, want it there", exists, err)
	}
	n := 0
	for info, err := range c.List(t.Context(), "k") {
		if n++; err != nil || info.Key != "key" {
			t.Errorf("List: got %+v, %v, want the key", info, err)
		}
	}
	if n != 1 {
		t.Errorf("List: got %d keys, want 1", n)
	}
	unlock(t, lease)
}
