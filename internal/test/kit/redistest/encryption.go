// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// NewEncryption makes certificates for servers on this machine and their clients, which
// the test takes along when it ends.
func NewEncryption(t testing.TB) *servers.Encryption {
	t.Helper()
	const host = "127.0.0.1"
	ca := kit.NewAuthority(t)
	e := &servers.Encryption{Dir: t.TempDir()}
	ca.WriteFile(t, e.AuthorityFile())
	kit.WritePair(t, e.ServerFile(), ca.Issue(t, host))
	kit.WritePair(t, e.ClientFile(), ca.Issue(t))
	return e
}
