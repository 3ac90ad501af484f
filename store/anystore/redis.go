// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"

	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/springredis"
)

var redisOptions = table[redisstore.Option]{
	"prefix":         text(redisstore.WithPrefix),
	"counter_ttl":    duration(redisstore.WithCounterTTL),
	"failover_grace": failoverGrace,
}

// registry is the parameter that springredis takes as an argument.
const registry = "registry"

var springRedisOptions = table[springredis.Option]{
	"poll_interval": duration(springredis.WithPollInterval),
	"lock_type": choice(map[string]springredis.Option{
		"spin": springredis.WithLockType(springredis.SpinLock), "pubsub": springredis.WithLockType(springredis.PubSubLock),
	}),
}

func failoverGrace(value string) (redisstore.Option, error) {
	if value == "off" {
		return redisstore.WithoutFailoverGrace(), nil
	}
	return duration(redisstore.WithFailoverGrace)(value)
}

func openRedis(_ context.Context, l location, s settings) (*Store, error) {
	opts, err := options(l, redisOptions)
	if err != nil {
		return nil, err
	}
	opts = append(opts, logging(s, redisstore.WithLogger, redisstore.WithoutLogger)...)
	return opened(redisstore.OpenURL(l.client+"://"+l.rest, opts...))
}

func openSpringRedis(_ context.Context, l location, s settings) (*Store, error) {
	key, ok := l.parameters[registry]
	if !ok {
		return nil, badURL("the parameter registry is missing, which is the registry key of Java's RedisLockRegistry")
	}
	opts, err := options(l, springRedisOptions)
	if err != nil {
		return nil, err
	}
	opts = append(opts, logging(s, springredis.WithLogger, springredis.WithoutLogger)...)
	return opened(springredis.OpenURL(l.client+"://"+l.rest, key, opts...))
}
