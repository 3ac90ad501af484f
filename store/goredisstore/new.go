// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"fmt"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// New uses the application's own client, which the store's Close leaves open: a *redis.Client, also of
// Sentinel, or a *redis.ClusterClient. Prefer [Open], which is faster. New costs:
//
//   - Each call takes a connection of the client, and a goroutine, so that it ends with its context. Calls
//     are pipelines, for which go-redis has ten connections besides its pool, unless PipelinePoolSize says
//     otherwise. When these and the pool are in use, renewals wait. Delays beyond a third of the TTL lose
//     leases.
//   - Each asynclock.Client has a connection for its messages. In a Cluster with sharded pub-sub it has
//     one for each bucket of keys that it waits for, 256 at most.
//   - The commands of one client may overtake each other; that is safe and costs round trips.
//   - Requests for a slot that a Cluster moves may fail more often until the move is over.
//   - Hooks see the words of each command, owner ids among them, and must not send a command twice. Those that
//     were added to a ClusterClient see no scripts, which go to the clients of its nodes: see OnNewNode.
//
// Some options of the client would make a promise of the store untrue. They are refused with an
// [*OptionError]: ContextTimeoutEnabled must be true, MaxRetries must be -1, ReadTimeout and
// WriteTimeout must be limits, and there must be no Limiter, ClusterSlots, NewClient, ReadOnly,
// RouteByLatency or RouteRandomly. A failover client must not have ReplicaOnly, which New can't see.
//
// New sends nothing. All its errors are asynclock's ErrInvalidOption.
func New(client redis.UniversalClient, opts ...redisstore.Option) (*redisstore.Store, error) {
	d, err := newDriver(client)
	if err != nil {
		return nil, err
	}
	return redisstore.NewWith(d, opts...)
}

// errClient is the error for a client of another kind.
var errClient = fmt.Errorf("%w: goredisstore: the client must be a *redis.Client or a *redis.ClusterClient, and not nil", store.ErrInvalidOption)

// newDriver checks a client.
func newDriver(client redis.UniversalClient) (*driver, error) {
	switch c := client.(type) {
	case *redis.Client:
		if c == nil {
			break
		}
		o := c.Options()
		return &driver{client: c, single: c, places: newPlaces(1, inAll)}, refusal("redis.Options").checkPromises(promises{
			o.ContextTimeoutEnabled, o.MaxRetries, o.ReadTimeout, o.WriteTimeout, o.Limiter,
		})
	case *redis.ClusterClient:
		if c == nil {
			break
		}
		o, r := c.Options(), refusal("redis.ClusterOptions")
		switch {
		case o.ClusterSlots != nil:
			return nil, r.because("ClusterSlots", refusedFields["ClusterSlots"])
		case o.ReadOnly: // also by RouteByLatency and RouteRandomly
			return nil, r.because("ReadOnly", "lets a replica run scripts that read, and a primary becomes one: leave out ReadOnly, RouteByLatency and RouteRandomly")
		case !isDefault(reflect.ValueOf(o.NewClient)):
			return nil, r.because("NewClient", "makes clients whose options New can't see: leave it out")
		}
		return &driver{client: c, cluster: c, places: newPlaces(ranges, perRange)}, r.checkPromises(promises{
			o.ContextTimeoutEnabled, o.MaxRetries, o.ReadTimeout, o.WriteTimeout, nil,
		})
	}
	return nil, errClient
}
