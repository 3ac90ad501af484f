// SPDX-License-Identifier: Apache-2.0

// Command beside is one of several processes, of two releases, that count under the locks of one server. It stops with
// an error if anything was counted beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const rounds = 200

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("ASYNCLOCK_REDIS_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	options, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	redis, err := rueidis.NewClient(options)
	if err != nil {
		return err
	}
	defer redis.Close()
	store, err := redisstore.OpenURL(url)
	if err != nil {
		return err
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		return err
	}
	permit, err := locks.Semaphore("beside:permits", 1)
	if err != nil {
		return err
	}
	token := int64(0)
	for range rounds {
		err = errors.Join(
			locks.WithLock(ctx, "beside:key", func(ctx context.Context, lease *asynclock.Lease) error {
				if lease.Token() <= token {
					return fmt.Errorf("token %d after %d", lease.Token(), token)
				}
				token = lease.Token()
				return count(ctx, redis, "beside:count")
			}),
			locks.WithRLock(ctx, "beside:key", func(ctx context.Context, _ *asynclock.Lease) error { return rest(ctx, redis, "beside:count") }),
			permit.With(ctx, 1, func(ctx context.Context, _ *asynclock.Lease) error { return count(ctx, redis, "beside:permitted") }),
		)
		if err != nil {
			return err
		}
	}
	return locks.Close(ctx)
}

// count adds one in two steps, and looks whether anybody did so in between.
func count(ctx context.Context, redis rueidis.Client, key string) error {
	n, err := read(ctx, redis, key)
	if err != nil {
		return err
	}
	before, err := redis.Do(ctx, redis.B().Set().Key(key).Value(strconv.FormatInt(n+1, 10)).Get().Build()).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return err
	}
	if before != n {
		return fmt.Errorf("%s: was %d, and then %d", key, n, before)
	}
	return nil
}

// rest looks whether anybody counts beside a reader.
func rest(ctx context.Context, redis rueidis.Client, key string) error {
	n, err := read(ctx, redis, key)
	if err != nil {
		return err
	}
	if again, err := read(ctx, redis, key); err != nil || again != n {
		return fmt.Errorf("%s: was %d, and then %d beside a reader: %w", key, n, again, err)
	}
	return nil
}

func read(ctx context.Context, redis rueidis.Client, key string) (int64, error) {
	n, err := redis.Do(ctx, redis.B().Get().Key(key).Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, nil
	}
	return n, err
}
