// SPDX-License-Identifier: Apache-2.0

package fenceredis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// A Client sends scripts to Redis. [Rueidis] and [GoRedis] make one of the application's own client,
// which stays the application's to close. Its zero value is none.
type Client struct {
	eval func(ctx context.Context, script string, keys, args []string) (any, error)
}

// Rueidis takes a client of rueidis, of any kind.
func Rueidis(c rueidis.CoreClient) Client {
	if c == nil {
		return Client{}
	}
	return Client{func(ctx context.Context, script string, keys, args []string) (any, error) {
		// The first key decides where it goes. That the others are there, the server checks: the client
		// would panic.
		command := c.B().Arbitrary("EVAL", script, strconv.Itoa(len(keys))).Keys(keys[0]).Args(keys[1:]...).Args(args...)
		return c.Do(ctx, command.Build()).ToAny()
	}}
}

// GoRedis takes a client of go-redis, of any kind: *redis.Client, *redis.ClusterClient, *redis.Ring or
// redis.UniversalClient. This package does not import go-redis; C is *redis.Cmd.
func GoRedis[C interface{ Result() (any, error) }](c interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) C
},
) Client {
	if c == nil {
		return Client{}
	}
	return Client{func(ctx context.Context, script string, keys, args []string) (any, error) {
		values := make([]any, len(args))
		for i, arg := range args {
			values[i] = arg
		}
		return c.Eval(ctx, script, keys, values...).Result()
	}}
}
