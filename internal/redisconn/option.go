// SPDX-License-Identifier: Apache-2.0

// Package redisconn is what every store in Redis does in the same way: how it
// connects, how it runs a script and scans, what it lets into requests and messages,
// and what it takes an error for.
package redisconn

import (
	"time"

	"github.com/redis/rueidis"
)

// ForLocks completes option. A ring of several connections would let a release
// overtake the next acquire; without AlwaysPipelining a context's deadline
// closes the connection; and the default timeouts notice a dead server after
// 10 s, which is longer than many TTLs.
func ForLocks(option rueidis.ClientOption) rueidis.ClientOption {
	if option.PipelineMultiplex == 0 {
		option.PipelineMultiplex = -1
	}
	if option.Dialer.KeepAlive == 0 {
		option.Dialer.KeepAlive = time.Second
	}
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = 3 * time.Second
	}
	if option.Sentinel.MasterSet != "" {
		if option.Sentinel.TopologyRefreshInterval == 0 {
			option.Sentinel.TopologyRefreshInterval = 5 * time.Second
		}
		// Connections to sentinels have a dialer of their own. Without KeepAlive
		// rueidis never notices a dead one, and waits for it with its mutex held:
		// no failover is followed, and Close does not return.
		if option.Sentinel.Dialer.KeepAlive == 0 {
			option.Sentinel.Dialer.KeepAlive = time.Second
		}
		if option.Sentinel.Dialer.Timeout == 0 {
			option.Sentinel.Dialer.Timeout = rueidis.DefaultDialTimeout
		}
	}
	option.AlwaysPipelining = !option.DisableAutoPipelining
	option.DisableCache = true
	option.ConnLifetime = 0 // a command that is under way when a lifetime ends may be sent twice
	option.ClientTrackingOptions = nil
	option.SendToReplicas = nil
	option.ReplicaSelector = nil //nolint:staticcheck // deprecated, and must not be in effect all the same
	option.ReadNodeSelector = nil
	option.Standalone.ReplicaAddress = nil
	option.ReplicaOnly = false
	return option
}
