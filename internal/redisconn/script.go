// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"

	"github.com/redis/rueidis"
)

// MaxPipeline is how many commands are sent together at most. rueidis moves
// pipelines of 2000 and more to another connection, where they would overtake
// what was sent before.
const MaxPipeline = 512

// RunScript runs a script n times, all at once, and returns the results in the
// same order. The commands for the i-th run are evalsha, which names the script,
// and eval, which has all of it. A server that does not know the script, because
// it was restarted or is new in the cluster, has not run it; it is told the whole
// script then. (rueidis' own Lua type would load it into every node before each
// pipeline, and fail if one of them is down.)
func RunScript(ctx context.Context, client rueidis.CoreClient, n int, evalsha, eval func(i int) rueidis.Completed) []rueidis.RedisResult {
	results := pipeline(ctx, client, n, evalsha)
	var unknown []int
	for i := range results {
		if IsNoScript(results[i]) {
			unknown = append(unknown, i)
		}
	}
	again := pipeline(ctx, client, len(unknown), func(i int) rueidis.Completed { return eval(unknown[i]) })
	for i, result := range again {
		results[unknown[i]] = result
	}
	return results
}

// pipeline sends n commands. Each pipeline is a slice of its own: when ctx ends,
// rueidis may yet send what it was given.
func pipeline(ctx context.Context, client rueidis.CoreClient, n int, command func(int) rueidis.Completed) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, 0, n)
	for first := 0; first < n; first += MaxPipeline {
		commands := make([]rueidis.Completed, min(n-first, MaxPipeline))
		for i := range commands {
			commands[i] = command(first + i)
		}
		results = append(results, client.DoMulti(ctx, commands...)...)
	}
	return results
}

// IsNoScript reports whether the server does not know a script by its name.
func IsNoScript(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && err.IsNoScript()
}
