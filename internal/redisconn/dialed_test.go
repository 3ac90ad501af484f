// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// A Cluster's client closes its connections after its Close has returned. If one of them is closed before, rueidis looks
// for the servers again, asleep for up to a second.
func TestTheEndOfConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ closedAfter, want time.Duration }{
		"rueidis closes it":  {closedAfter: 500 * time.Millisecond, want: 500 * time.Millisecond},
		"rueidis forgets it": {closedAfter: time.Hour, want: closesWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d dialed
				near, far := net.Pipe()
				dial := d.dialer(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return near, nil })
				conn, err := dial(t.Context(), "", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				time.AfterFunc(c.closedAfter, func() { conn.Close() })
				var seen time.Duration
				go func() {
					_, _ = far.Read(make([]byte, 1)) // until the end
					seen = time.Since(began)
				}()
				d.end()
				synctest.Wait()
				if took := time.Since(began); took != c.want || seen != c.want {
					t.Errorf("end returned after %v, and the connection was closed after %v: want %v", took, seen, c.want)
				}
				if _, err := dial(t.Context(), "", nil, nil); !errors.Is(err, rueidis.ErrClosing) {
					t.Errorf("a dial afterwards: got %v, want ErrClosing", err)
				}
			})
		})
	}
}
