// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
)

// An Encryption makes servers speak only TLS, and only to clients with a certificate. Servers
// with a nil Encryption speak to anybody.
type Encryption struct {
	// Dir has the files, by which another process finds a client's.
	Dir string
}

// ErrNoTLS is in errors about a redis-server that was built without TLS.
var ErrNoTLS = errors.New("it was built without TLS")

// AuthorityFile has the certificate of the authority that has signed all others.
func (e *Encryption) AuthorityFile() string { return filepath.Join(e.Dir, "authority.pem") }

// ServerFile has the servers' key and certificate.
func (e *Encryption) ServerFile() string { return filepath.Join(e.Dir, "server.pem") }

// ClientFile has the clients' key and certificate.
func (e *Encryption) ClientFile() string { return filepath.Join(e.Dir, "client.pem") }

// arguments are those of a redis-server that listens on a port.
func (e *Encryption) arguments(port string) []string {
	if e == nil {
		return []string{"--port", port}
	}
	return []string{
		"--port", "0", "--tls-port", port,
		"--tls-ca-cert-file", e.AuthorityFile(), "--tls-cert-file", e.ServerFile(), "--tls-key-file", e.ServerFile(),
		"--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

func (e *Encryption) scheme() string {
	if e == nil {
		return "redis"
	}
	return "rediss"
}

// ClientTLS is for a client, which may be in another process. It is nil for a nil one.
func (e *Encryption) ClientTLS() (*tls.Config, error) {
	if e == nil {
		return nil, nil
	}
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(e.AuthorityFile())
	if err != nil {
		return nil, err
	}
	roots.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(e.ClientFile(), e.ClientFile())
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, nil
}
