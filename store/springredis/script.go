// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"crypto/sha1" // #nosec G505 -- how Redis names scripts
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed shared.lua
var sharedLua string

//go:embed acquire.lua
var acquireLua string

//go:embed renew.lua
var renewLua string

//go:embed release.lua
var releaseLua string

//go:embed force.lua
var forceLua string

//go:embed inspect.lua
var inspectLua string

// The scripts, as the server knows them.
var (
	acquireScript = newScript(acquireLua)
	renewScript   = newScript(renewLua)
	releaseScript = newScript(releaseLua)
	forceScript   = newScript(forceLua)
	inspectScript = newScript(inspectLua)
)

// A script is a Lua script and its name on the server.
type script struct {
	source string
	sha    string
}

// newScript replaces the line that asks for shared.lua by it.
func newScript(source string) *script {
	source = strings.Replace(source, "--include shared.lua\n", sharedLua, 1)
	sum := sha1.Sum([]byte(source)) // #nosec G401
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

// A call is the Redis keys and arguments of one run of a script.
type call struct{ keys, args []string }

// run runs a script once per call, all at once, and returns the results in the
// same order. A server that does not know the script has not run it; it is told
// the whole script then.
func (st *Store) run(ctx context.Context, sc *script, calls []call) []rueidis.RedisResult {
	commands := make([]rueidis.Completed, len(calls))
	for i, c := range calls {
		commands[i] = st.commands.B().Evalsha().Sha1(sc.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
	}
	results := st.send(ctx, commands)
	var unknown []int
	var again []rueidis.Completed
	for i := range results {
		if err, ok := rueidis.IsRedisErr(results[i].Error()); ok && err.IsNoScript() {
			c := calls[i]
			unknown = append(unknown, i)
			again = append(again, st.commands.B().Eval().Script(sc.source).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build())
		}
	}
	for i, result := range st.send(ctx, again) {
		results[unknown[i]] = result
	}
	return results
}

// largestPipeline is how many commands are sent together at most. rueidis moves
// pipelines of 2000 and more to another connection, where they would overtake
// what was sent before.
const largestPipeline = 512

func (st *Store) send(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, 0, len(commands))
	for len(commands) > 0 {
		n := min(len(commands), largestPipeline)
		results = append(results, st.commands.DoMulti(ctx, commands[:n:n]...)...)
		commands = commands[n:]
	}
	return results
}

// runOne is run for a single call.
func (st *Store) runOne(ctx context.Context, sc *script, c call) rueidis.RedisResult {
	return st.run(ctx, sc, []call{c})[0]
}
