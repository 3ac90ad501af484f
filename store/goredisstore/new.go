// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"fmt"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// New connects by go-redis, as the options of the application's client say: a *redis.Client, also of Sentinel, or a
// *redis.ClusterClient. The client must last as long as the store, whose Close leaves it open. Its guarantees are those of
// [Open], which is faster: prefer Open(client.Options()), unless New is needed for OnConnect, for a
// StreamingCredentialsProvider, or for a failover client whose FailoverOptions are not at hand.
//
// The connections are the store's own, so no command of the application delays a renewal: at most 16 to a server for
// calls, and one for messages. docs/stores/goredis.md lists them. Pools, timeouts, retries, caches and hooks of the client have no
// part in them. An exception is a ReadTimeout or WriteTimeout below 2 s, which is how soon a dead connection is given up.
//
//   - The commands of one client may overtake each other; that is safe and costs round trips.
//   - Requests for a slot that a Cluster moves may fail more often until the move is over.
//
// A client with Limiter, ClusterSlots or NewClient is refused with an [*OptionError]. A failover client must not have
// ReplicaOnly, which New can't see.
//
// New sends nothing. All its errors are asynclock's ErrInvalidOption.
func New(client redis.UniversalClient, opts ...redisstore.Option) (*redisstore.Store, error) {
	d, err := newDriver(client)
	if err != nil {
		return nil, err
	}
	st, err := redisstore.NewWith(d, opts...)
	if err != nil {
		d.Close()
	}
	return st, err
}

// errClient is the error for a client of another kind.
var errClient = fmt.Errorf("%w: goredisstore: the client must be a *redis.Client or a *redis.ClusterClient, and not nil", store.ErrInvalidOption)

// newDriver makes a driver with clients of our own.
func newDriver(client redis.UniversalClient) (*driver, error) {
	d := &driver{conns: newConns(), feeds: newFeeds()}
	switch c := client.(type) {
	case *redis.Client:
		if c == nil {
			break
		}
		if c.Options().Limiter != nil {
			return nil, refusal("redis.Options").because("Limiter", refusedFields["Limiter"])
		}
		d.single, d.places = serverForLocks(c.Options(), d.conns), newPlaces(1, inAll)
		d.client = d.single
		return d, nil
	case *redis.ClusterClient:
		if c == nil {
			break
		}
		o, r := c.Options(), refusal("redis.ClusterOptions")
		switch {
		case o.ClusterSlots != nil:
			return nil, r.because("ClusterSlots", refusedFields["ClusterSlots"])
		case !isDefault(reflect.ValueOf(o.NewClient)):
			return nil, r.because("NewClient", refusedFields["NewClient"])
		}
		d.cluster, d.places = clusterForLocks(o, d.conns), newPlaces(ranges, perRange)
		d.client = d.cluster
		return d, nil
	}
	return nil, errClient
}
