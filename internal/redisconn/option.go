// SPDX-License-Identifier: Apache-2.0

// Package redisconn has what all stores in Redis have in common: how they connect, run scripts and
// scan, which requests and messages they accept, and how they classify errors.
//
// call.go and line.go make a call return when its context ends, whatever rueidis does. solo.go has a
// connection for a caller that is alone.
package redisconn

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/backoff"
)

const (
	// ringScale is the least RingScaleEachConn. The ring of a connection has 1 << RingScaleEachConn
	// places for the calls under way.
	ringScale = 8
	// spare is how many of these places are not given to callers, but left for the PINGs of rueidis
	// and of a line.
	spare = 16
)

// buffer is how many bytes a connection reads and writes at once. That is some 300 requests. With
// rueidis' default of half a megabyte, most of a store's memory would be buffers.
const buffer = 64 << 10

// ForLocks completes option. With a ring of several connections, a release could overtake the next
// acquire. Without AlwaysPipelining, a context's deadline closes the connection. The default
// timeouts notice a dead server after 10 s, which is longer than many TTLs.
func ForLocks(option rueidis.ClientOption) rueidis.ClientOption {
	if option.PipelineMultiplex == 0 {
		option.PipelineMultiplex = -1
	}
	if option.Dialer.KeepAlive == 0 {
		option.Dialer.KeepAlive = time.Second
	}
	option.RingScaleEachConn = max(option.RingScaleEachConn, ringScale)
	if option.ReadBufferEachConn == 0 {
		option.ReadBufferEachConn = buffer
	}
	if option.WriteBufferEachConn == 0 {
		option.WriteBufferEachConn = buffer
	}
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = 3 * time.Second
	}
	if option.Sentinel.MasterSet != "" {
		// rueidis would speak to sentinels without TLS, and send them a password, if they ask for one.
		if option.Sentinel.TLSConfig == nil {
			option.Sentinel.TLSConfig = option.TLSConfig
		}
		if option.Sentinel.TopologyRefreshInterval == 0 {
			option.Sentinel.TopologyRefreshInterval = 5 * time.Second
		}
		// Connections to sentinels have a dialer of their own. Without KeepAlive rueidis never
		// notices a dead one, and waits for it with its mutex held. It then follows no failover,
		// and Close does not return.
		if option.Sentinel.Dialer.KeepAlive == 0 {
			option.Sentinel.Dialer.KeepAlive = time.Second
		}
		if option.Sentinel.Dialer.Timeout == 0 {
			option.Sentinel.Dialer.Timeout = rueidis.DefaultDialTimeout
		}
	}
	if option.RetryDelay == nil {
		option.RetryDelay = retryDelay
	}
	if option.DialFn == nil && option.DialCtxFn == nil && option.Dialer.Timeout == 0 {
		option.DialCtxFn = dialPromptly
	}
	option.AlwaysPipelining = !option.DisableAutoPipelining
	option.DisableCache = true
	option.DisableTCPNoDelay = false // a request that waits for others to fill a packet may take longer than a lock
	option.ConnLifetime = 0          // a command under way at the end of a lifetime may be sent twice
	option.ClientTrackingOptions = nil
	option.SendToReplicas = nil
	option.ReplicaSelector = nil //nolint:staticcheck // deprecated, but it must not be in effect
	option.ReadNodeSelector = nil
	option.Standalone.ReplicaAddress = nil
	option.ReplicaOnly = false
	option.EnableReplicaAZInfo = false // no replica is asked, and rueidis panics where a server without HELLO has such a zone
	return option
}

// retryDelay is how long rueidis waits before it repeats what it may repeat. That is a subscription
// above all. When it is back, all waiters ask again. So its pauses delay the grace after a failover,
// and rueidis' own grow to a second.
func retryDelay(attempts int, _ rueidis.Completed, _ error) time.Duration {
	return backoff.Jitter(backoff.Doubled(time.Millisecond, attempts-1, 250*time.Millisecond), 0.2)
}
