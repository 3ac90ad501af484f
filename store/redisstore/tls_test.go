// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// As docs/security.md would have it: encrypted, the server and the client known
// by their certificates, and a user with the rights that the package comment
// lists and no other.
func TestConformanceWithTheLeastRightsOverTLS(t *testing.T) {
	sv := ownTLSServer(t)
	user := sv.locker(t)
	storetest.Run(t, func(t *testing.T) asynclock.Store { return user.store(t) })
	sv.nothingDenied(t)
}

// Nobody talks to a server that can't prove who it is, nor a server to a client.
func TestStrangersAreRefused(t *testing.T) {
	sv := ownTLSServer(t)
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

// locker makes the user that the package comment describes, who may also list,
// and returns the server as this user sees it.
func (sv *server) locker(t *testing.T) *server {
	t.Helper()
	const name, password = "locker", "pa55word-of-locker"
	sv.do(t, append([]string{"ACL", "SETUSER", name, "on", ">" + password, "resetkeys", "resetchannels", "-@all", "~" + sv.prefix + ":{*", "&" + sv.prefix + ":*"},
		sv.known(t, strings.Fields(documentedRights+" +scan"))...)...)
	sv.do(t, "ACL", "LOG", "RESET")
	option := sv.option
	option.Username, option.Password = name, password
	user := *onServer(t, option)
	user.prefix = sv.prefix
	return &user
}

// ownTLSServer starts a server that speaks nothing but TLS, and to nobody
// without a certificate. Not every redis-server is built with TLS.
func ownTLSServer(t *testing.T) *server {
	t.Helper()
	ca := newAuthority(t)
	serverCert, clientCert := ca.issue(t), ca.issue(t)
	dir, addr := t.TempDir(), freeAddr(t)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := x509.MarshalPKCS8PrivateKey(serverCert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	_, err = tryServer(t, addr, "--port", "0", "--tls-port", port, "--tls-auth-clients", "yes",
		"--tls-ca-cert-file", write("ca.pem", "CERTIFICATE", ca.cert.Raw),
		"--tls-cert-file", write("cert.pem", "CERTIFICATE", serverCert.Certificate[0]),
		"--tls-key-file", write("key.pem", "PRIVATE KEY", key))
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "Bad directive"), strings.Contains(err.Error(), "Failed finding TLS support"):
		t.Skip("this redis-server was built without TLS")
	default:
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	return onServer(t, rueidis.ClientOption{
		InitAddress: []string{addr},
		TLSConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{clientCert}},
	})
}

// An authority signs the certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the test's authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return &authority{sign(t, template, template, key, key), key}
}

// issue makes a certificate for either side of a connection to this machine.
func (ca *authority) issue(t *testing.T) tls.Certificate {
	t.Helper()
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca.cert, key, ca.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
