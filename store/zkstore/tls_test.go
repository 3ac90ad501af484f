// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/zkserver"
)

// A server's certificate is compared with its name, which is looked up for each
// connection.
func TestTLS(t *testing.T) {
	t.Parallel()
	secure, wrong, roots := startSecure(t)
	w := newWire(t)
	st := openOn(t, []string{secure}, newRoot(), WithDialer(w.dial), WithTLS(&tls.Config{RootCAs: roots}))
	c := locks(t, st)
	lease := lock(t, c, "key")
	w.cut()
	w.mend()
	unlock(t, lock(t, c, "another key")) // by another connection of the same session
	if lease.Err() != nil {
		t.Errorf("the lease after a reconnection: got %v, want it valid", lease.Err())
	}
	unlock(t, lease)

	if testing.Short() {
		return // the rest waits for Open's patience
	}
	for name, refused := range map[string]struct {
		server string
		roots  *x509.CertPool
		as     any
	}{
		"that nobody vouches for": {secure, x509.NewCertPool(), new(x509.UnknownAuthorityError)},
		"for another name":        {wrong, roots, new(x509.HostnameError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Open([]string{refused.server}, WithTLS(&tls.Config{RootCAs: refused.roots}))
			if !errors.Is(err, asynclock.ErrUnreachable) || !errors.As(err, refused.as) {
				t.Errorf("Open with a certificate %s: got %v, want ErrUnreachable, and why", name, err)
			}
		})
	}
}

// startSecure starts a server that speaks TLS. It returns its address, by the name
// that its certificate is for and by another, and what vouches for that.
func startSecure(t *testing.T) (secure, wrong string, roots *x509.CertPool) {
	t.Helper()
	if err := zkserver.Find(); err != nil {
		missing(t, "ZooKeeper is not installed: not tested with TLS: "+err.Error())
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		Subject:  pkix.Name{CommonName: "asynclock"}, // Java wants one
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
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "server.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ports := freePorts(t, 2)
	s, err := zkserver.StartSecure(t.Context(), filepath.Join(dir, "zookeeper"), ports[0], ports[1], file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	roots = x509.NewCertPool()
	roots.AddCert(certificate)
	port := ":" + strconv.Itoa(ports[1])
	return "localhost" + port, "127.0.0.1" + port, roots
}
