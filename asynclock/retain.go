// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"log/slog"

	"github.com/asynclock/asynclock-go/watchdog"
)

// retentionFor turns retention off if the store can't tell who requests a key. It logs that once.
func (c *Client) retentionFor(s *lockSettings) {
	if s.Retention == 0 || c.features.Retention {
		return
	}
	s.Retention = 0
	c.refused.Do(func() {
		c.log.Add(slog.LevelWarn, "no key is retained: the store can't tell who else wants it")
	})
}

// tokenLooks is how often to check whether a token has become available. The checks take two
// microseconds at least, because reading the clock takes ten nanoseconds.
const tokenLooks = 200

// awaitTokenLocked spins for up to 2 µs until a retained key has a token for one more lease. It returns
// the time. A round trip to the store costs a hundred times as much.
func (s *keyState) awaitTokenLocked() watchdog.Instant {
	now := watchdog.Refresh()
	for i := 0; i < tokenLooks && s.machine.LacksToken(now); i++ {
		now = watchdog.Now()
	}
	return now
}
