// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/sha1" // #nosec G505 -- how Redis names scripts
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed epoch.lua
var epochLua string

//go:embed promote.lua
var promoteLua string

//go:embed acquire.lua
var acquireLua string

//go:embed release.lua
var releaseLua string

//go:embed renew.lua
var renewLua string

//go:embed reassert.lua
var reassertLua string

//go:embed force.lua
var forceLua string

//go:embed inspect.lua
var inspectLua string

// The scripts, as the server knows them.
var (
	acquireScript  = newScript(acquireLua)
	releaseScript  = newScript(releaseLua)
	renewScript    = newScript(renewLua)
	reassertScript = newScript(reassertLua)
	forceScript    = newScript(forceLua)
	inspectScript  = newScript(inspectLua)
)

// A script is a Lua script and its name on the server.
type script struct {
	source string
	sha    string
}

// newScript replaces the lines that ask for epoch.lua and promote.lua by them.
func newScript(source string) *script {
	source = strings.Replace(source, "--include epoch.lua\n", epochLua, 1)
	source = strings.Replace(source, "--include promote.lua\n", promoteLua, 1)
	sum := sha1.Sum([]byte(source)) // #nosec G401
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// maxPipeline is how many commands are sent together at most. rueidis moves
// pipelines of 2000 and more to another connection, where they would overtake
// what was sent before.
const maxPipeline = 512

// run runs a script once per call and returns the results in the same order.
// A server that does not know the script, because it was restarted or is new in
// the cluster, has not run it; it is told the whole script then. (rueidis' own
// Lua type would load it into every node before each pipeline, and fail if one
// of them is down.)
func (st *Store) run(ctx context.Context, sc *script, calls []call) []rueidis.RedisResult {
	results := st.pipeline(ctx, len(calls), func(i int) rueidis.Completed { return calls[i].evalsha(st.commands.B(), sc) })
	var unknown []int
	for i := range results {
		if isNoScript(results[i]) {
			unknown = append(unknown, i)
		}
	}
	again := st.pipeline(ctx, len(unknown), func(i int) rueidis.Completed { return calls[unknown[i]].eval(st.commands.B(), sc) })
	for i, result := range again {
		results[unknown[i]] = result
	}
	return results
}

// pipeline sends n commands. Each pipeline is a slice of its own: when ctx ends,
// rueidis may yet send what it was given.
func (st *Store) pipeline(ctx context.Context, n int, command func(int) rueidis.Completed) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, 0, n)
	for first := 0; first < n; first += maxPipeline {
		commands := make([]rueidis.Completed, min(n-first, maxPipeline))
		for i := range commands {
			commands[i] = command(first + i)
		}
		results = append(results, st.commands.DoMulti(ctx, commands...)...)
	}
	return results
}

// runOne is run for a single call, without its slices.
func (st *Store) runOne(ctx context.Context, sc *script, c *call) rueidis.RedisResult {
	result := st.commands.Do(ctx, c.evalsha(st.commands.B(), sc))
	if isNoScript(result) {
		result = st.commands.Do(ctx, c.eval(st.commands.B(), sc))
	}
	return result
}

func isNoScript(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && err.IsNoScript()
}

func isTryAgain(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && err.IsTryAgain()
}
