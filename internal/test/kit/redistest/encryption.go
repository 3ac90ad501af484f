// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// An Encryption is what servers speak nothing but TLS with, to nobody without a
// certificate. Those of a nil one speak to anybody.
type Encryption struct {
	// Dir is where the files are. Another process finds a client's there.
	Dir string
}

// NewEncryption makes certificates for servers on this machine and their clients,
// which the test takes along when it ends.
func NewEncryption(t testing.TB) *Encryption {
	t.Helper()
	const host = "127.0.0.1"
	ca := kit.NewAuthority(t)
	e := &Encryption{t.TempDir()}
	ca.WriteFile(t, authorityFile(e.Dir))
	kit.WritePair(t, e.serverFile(), ca.Issue(t, host))
	kit.WritePair(t, clientFile(e.Dir), ca.Issue(t))
	return e
}

func authorityFile(dir string) string    { return filepath.Join(dir, "authority.pem") }
func clientFile(dir string) string       { return filepath.Join(dir, "client.pem") }
func (e *Encryption) serverFile() string { return filepath.Join(e.Dir, "server.pem") }

// Args are those of a redis-server that listens on a port.
func (e *Encryption) Args(port string) []string {
	if e == nil {
		return []string{"--port", port}
	}
	return []string{
		"--port", "0", "--tls-port", port,
		"--tls-ca-cert-file", authorityFile(e.Dir), "--tls-cert-file", e.serverFile(), "--tls-key-file", e.serverFile(),
		"--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

// Unknown reports whether that is why a redis-server ended that said this: not
// every one is built with TLS.
func (e *Encryption) Unknown(said string) bool {
	return e != nil && (strings.Contains(said, "Bad directive") || strings.Contains(said, "Failed finding TLS support"))
}

// ClientTLS is for a client, by the files in the directory of an Encryption.
func ClientTLS(dir string) (*tls.Config, error) {
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(authorityFile(dir))
	if err != nil {
		return nil, err
	}
	roots.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(clientFile(dir), clientFile(dir))
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}
