// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Miniredis starts a server in this process. Its clock stands still but for what
// pass adds to it.
func Miniredis(t testing.TB) (option rueidis.ClientOption, pass func(time.Duration)) {
	t.Helper()
	mini := miniredis.RunT(t)
	now := time.Now().Truncate(time.Microsecond)
	mini.SetTime(now)
	mini.ClockTTL(true)
	// miniredis knows enough of Cluster to be taken for one.
	option = rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true}
	return option, func(d time.Duration) {
		now = now.Add(d)
		mini.SetTime(now)
	}
}
