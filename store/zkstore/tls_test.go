// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
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
	wantFinding(t, "server by TLS", check(t, st)["server"], store.VerdictOK, "is ZooKeeper 3.", "")

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
			if !errors.Is(err, store.ErrUnreachable) || !errors.As(err, refused.as) {
				t.Errorf("Open with a certificate %s: got %v, want ErrUnreachable, and why", name, err)
			}
		})
	}
}

// startSecure starts a server that speaks TLS. It returns its address, by the name
// that its certificate is for and by another, and what vouches for that.
func startSecure(t *testing.T) (secure, wrong string, roots *x509.CertPool) {
	t.Helper()
	zktest.Need(t)
	ca := kit.NewAuthority(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "server.pem")
	kit.WritePair(t, file, ca.Issue(t, "localhost"))
	s, err := servers.StartSecureZooKeeper(t.Context(), dir, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	port := ":" + strconv.Itoa(s.SecurePort)
	return "localhost" + port, "127.0.0.1" + port, ca.Roots()
}
