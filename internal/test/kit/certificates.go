// SPDX-License-Identifier: Apache-2.0

package kit

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
	"testing"
	"time"
)

// An Authority signs certificates. Nobody trusts it but who is given its Roots.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one with a key of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := template(1, "the test's authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	return &Authority{sign(t, template, template, key, key), key}
}

// Roots are what to trust for whatever the authority has signed.
func (a *Authority) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return roots
}

// WriteFile writes the authority's own certificate into a file, in PEM.
func (a *Authority) WriteFile(t testing.TB, name string) {
	t.Helper()
	write(t, name, certificateBlock(a.cert.Raw))
}

// Issue makes a certificate for either side of a connection, good for an hour.
// Hosts are the names and addresses that a server may be reached by.
func (a *Authority) Issue(t testing.TB, hosts ...string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := template(2, "the test's server or client") // Java wants a name
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	cert := sign(t, template, a.cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// WritePair writes a certificate's key, as PKCS #8, and the certificate into one
// file, in PEM.
func WritePair(t testing.TB, name string, pair tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, &pem.Block{Type: "PRIVATE KEY", Bytes: key}, certificateBlock(pair.Certificate[0]))
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) *x509.Certificate {
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

func certificateBlock(der []byte) *pem.Block { return &pem.Block{Type: "CERTIFICATE", Bytes: der} }

func write(t testing.TB, name string, blocks ...*pem.Block) {
	t.Helper()
	var text []byte
	for _, block := range blocks {
		text = append(text, pem.EncodeToMemory(block)...)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
