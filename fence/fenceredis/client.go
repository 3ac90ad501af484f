// SPDX-License-Identifier: Apache-2.0

package fenceredis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/fence"
)

// A Client sends scripts to Redis. [Rueidis] and [GoRedis] make one of the application's own client,
// which stays the application's to close. Its zero value is none.
type Client struct {
	eval    func(ctx context.Context, script string, keys, args []string) (any, error)
	refused error // why there is no eval
}

var (
	// A ring sends a script to the server of its first key, which runs it whatever its other keys are. The ring
	// would look for these elsewhere.
	errRing     = fmt.Errorf("%w: a ring of servers can't keep data and its fence together", fence.ErrInvalidOption)
	errPipeline = fmt.Errorf("%w: a pipeline has no answer yet", fence.ErrInvalidOption)
)

// Rueidis takes a client of rueidis, of any kind.
func Rueidis(c rueidis.CoreClient) Client {
	if c == nil {
		return Client{}
	}
	return Client{eval: func(ctx context.Context, script string, keys, args []string) (any, error) {
		// The first key decides where it goes. That the others are there, the server checks: the client
		// would panic.
		command := c.B().Arbitrary("EVAL", script, strconv.Itoa(len(keys))).Keys(keys[0]).Args(keys[1:]...).Args(args...)
		return c.Do(ctx, command.Build()).ToAny()
	}}
}

// GoRedis takes a client of go-redis: *redis.Client, *redis.ClusterClient or redis.UniversalClient. This package does not
// import go-redis; C is *redis.Cmd.
//
// [New] refuses a *redis.Ring with [fence.ErrInvalidOption], and a redis.Pipeliner. A ring in a wrapper that hides its
// methods is not noticed. Neither is a proxy that divides keys among servers. Writes would be acknowledged there that
// nobody can read.
func GoRedis[C interface{ Result() (any, error) }](c interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) C
},
) Client {
	switch c.(type) {
	case nil:
		return Client{}
	case interface {
		SetAddrs(shards map[string]string)
	}:
		return Client{refused: errRing}
	case interface{ Discard() }:
		return Client{refused: errPipeline}
	}
	return Client{eval: func(ctx context.Context, script string, keys, args []string) (any, error) {
		values := make([]any, len(args))
		for i, arg := range args {
			values[i] = arg
		}
		return c.Eval(ctx, script, keys, values...).Result()
	}}
}
