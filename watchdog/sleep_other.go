// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package watchdog

import "time"

// sleepSince estimates how long the machine was suspended since the process started: by how much
// the wall clock is ahead of the monotonic one. Steps of less than a second count as corrections of
// the wall clock. A larger step forward counts as sleep and ends leases early, which is safe.
func sleepSince(started time.Time) time.Duration {
	now := time.Now()
	ahead := now.Round(0).Sub(started.Round(0)) - now.Sub(started)
	if ahead < time.Second {
		return 0
	}
	return ahead
}
