// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Unhurried is the ConnWriteTimeout for a server in the test's own process, which
// interprets scripts beside all other tests: on a busy machine a batch takes it longer
// than what elsewhere means that the server is dead.
const Unhurried = time.Minute

// runMiniredis starts a server in this process. Its clock only moves when pass is called.
func runMiniredis(t testing.TB) (option rueidis.ClientOption, pass func(time.Duration)) {
	t.Helper()
	mini := miniredis.RunT(t)
	now := time.Now().Truncate(time.Microsecond)
	mini.SetTime(now)
	mini.ClockTTL(true)
	option = rueidis.ClientOption{
		InitAddress:       []string{mini.Addr()},
		ForceSingleClient: true, // miniredis knows enough of Cluster to be taken for one
		ConnWriteTimeout:  Unhurried,
	}
	return option, func(d time.Duration) {
		now = now.Add(d)
		mini.SetTime(now)
	}
}

// InBubble starts a server inside a synctest bubble: its clock is the bubble's, and its
// connections are pipes. Before the bubble ends, rueidis' last timers need a minute.
func InBubble(t *testing.T) (*miniredis.Miniredis, rueidis.ClientOption) {
	t.Helper()
	mini := miniredis.NewMiniRedis()
	mini.ClockTTL(true)
	t.Cleanup(mini.Close)
	return mini, rueidis.ClientOption{
		InitAddress:       []string{"bubble"},
		ForceSingleClient: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return mini.Dial()
		},
	}
}
