// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Connections of the application's client may be in use for long: by a command that blocks, or by one that waits for a
// connection that is dead. So locks have connections of their own, by go-redis and by that client's options.

const (
	// callsAtOnce is how many connections to a server may serve calls.
	callsAtOnce = 16
	// answerWithin is how long an answer may take. The client repeats a renewal sooner, on another connection.
	answerWithin = 2 * time.Second
	// idleWithin is for how long a connection is used again. Many a firewall forgets it a few minutes later.
	idleWithin = time.Minute
	// bufferSize is enough for some 150 requests.
	bufferSize = 32 << 10
)

// serverForLocks returns a client of our own for a server.
func serverForLocks(of *redis.Options, c *conns) *redis.Client {
	o := *of
	if o.Dialer == nil {
		o.Dialer = redis.NewDialer(&o)
	}
	o.Dialer = c.dialer(o.Dialer, limit(o.DialTimeout, dialDefault))
	o.DialerRetries = 1 // whoever wants the lock asks again
	// A call ends with its context, and nothing is sent twice.
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	o.ReadTimeout, o.WriteTimeout = limit(o.ReadTimeout, answerWithin), limit(o.WriteTimeout, answerWithin)
	o.PoolSize, o.PipelinePoolSize, o.MaxConcurrentDials, o.PoolTimeout = callsAtOnce, -1, 0, 0
	o.PoolFIFO, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns, o.ConnMaxIdleTime = false, 0, 0, 0, idleWithin
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	// Nothing of this is about what the store sends.
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.PushNotificationProcessor, o.AutoPipelineOptions = nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(&o)
}

// clusterForLocks returns a client of our own for a Cluster.
func clusterForLocks(of *redis.ClusterOptions, c *conns) *redis.ClusterClient {
	o := *of
	o.NewClient = func(node *redis.Options) *redis.Client { return serverForLocks(node, c) }
	o.MaxRedirects = -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	return redis.NewClusterClient(&o)
}

// limit returns a time that has a limit.
func limit(set, most time.Duration) time.Duration {
	if set <= 0 || set > most {
		return most
	}
	return set
}
