// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"

	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/springredis"
)

func openRedis(_ context.Context, l location, s settings) (*Store, error) {
	opts, err := options(l, map[string]func(string) (redisstore.Option, error){
		"prefix":         text(redisstore.WithPrefix),
		"counter_ttl":    duration(redisstore.WithCounterTTL),
		"failover_grace": failoverGrace,
	})
	if err != nil {
		return nil, err
	}
	opts = append(opts, logging(s, redisstore.WithLogger, redisstore.WithoutLogger)...)
	st, err := redisstore.OpenURL(l.client+"://"+l.rest, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{st, []func(){st.Close}}, nil
}

func failoverGrace(value string) (redisstore.Option, error) {
	if value == "off" {
		return redisstore.WithoutFailoverGrace(), nil
	}
	return duration(redisstore.WithFailoverGrace)(value)
}

func openSpringRedis(_ context.Context, l location, s settings) (*Store, error) {
	registry, ok := l.parameters["registry"]
	if !ok {
		return nil, badURL("the parameter registry is missing, which is the registry key of Java's RedisLockRegistry")
	}
	opts, err := options(l, map[string]func(string) (springredis.Option, error){
		"poll_interval": duration(springredis.WithPollInterval),
		"lock_type": choice(map[string]springredis.Option{
			"spin": springredis.WithLockType(springredis.SpinLock), "pubsub": springredis.WithLockType(springredis.PubSubLock),
		}),
	})
	if err != nil {
		return nil, err
	}
	opts = append(opts, logging(s, springredis.WithLogger, springredis.WithoutLogger)...)
	st, err := springredis.OpenURL(l.client+"://"+l.rest, registry, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{st, []func(){st.Close}}, nil
}
