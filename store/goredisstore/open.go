// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store/redisstore"
)

// Options are those of go-redis that [Open] takes.
type Options interface {
	*redis.Options | *redis.UniversalOptions | *redis.ClusterOptions | *redis.FailoverOptions
}

// Open connects to the deployment that go-redis' options describe, as redisstore.Open does:
//
//   - redis.Options: one server, also if it is a node of a Cluster.
//   - redis.ClusterOptions: a Cluster.
//   - redis.FailoverOptions: the primary that sentinels name.
//   - redis.UniversalOptions: one of these, as redis.NewUniversalClient chooses.
//
// The options may have served for a client before, or be those that its method Options returns. An
// exception is a failover client: its method does not return the FailoverOptions, which Open needs.
// Open does not change the options, and keeps no reference to the struct.
//
// A ReadTimeout or WriteTimeout below 3 s is how soon a dead server is noticed. Longer ones have no
// meaning for locks, because some TTLs end before them. A DialTimeout other than go-redis' default of
// 5 s is how long a dial may take. With a Dialer, TLSConfig has no effect, as in go-redis.
//
// Errors: an [*OptionError] for a field that can't be carried, and those of redisstore.Open.
func Open[O Options](options O, opts ...redisstore.Option) (*redisstore.Store, error) {
	option, err := translate(options)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(option, opts...)
}

// translate returns the options of rueidis for one of the types of [Options].
func translate(options any) (rueidis.ClientOption, error) {
	if err := checkFields(options); err != nil {
		return rueidis.ClientOption{}, err
	}
	switch o := options.(type) {
	case *redis.Options:
		return ofServer("redis.Options", o)
	case *redis.ClusterOptions:
		return ofCluster("redis.ClusterOptions", o)
	case *redis.FailoverOptions:
		return ofSentinel("redis.FailoverOptions", o)
	case *redis.UniversalOptions:
		return ofWhatever(*o)
	}
	return rueidis.ClientOption{}, errNil // Options allows no other type
}
