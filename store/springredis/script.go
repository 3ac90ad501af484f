// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
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

// newScript replaces the line that asks for shared.lua by it.
func newScript(source string) *redisconn.Script {
	return redisconn.NewScript(strings.Replace(source, "--include shared.lua\n", sharedLua, 1))
}

// A call is the Redis keys and arguments of one run of a script.
type call struct{ keys, args []string }

// run runs a script once per call, all at once, and returns the results in the
// same order.
func (st *Store) run(ctx context.Context, sc *redisconn.Script, calls []call) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, len(calls))
	redisconn.RunScripts(ctx, st.conn, len(calls), func(i int) (*redisconn.Script, []string, []string) {
		return sc, calls[i].keys, calls[i].args
	}, func(i int, result rueidis.RedisResult) { results[i] = result })
	return results
}

// runOne is run for a single call.
func (st *Store) runOne(ctx context.Context, sc *redisconn.Script, c call) rueidis.RedisResult {
	return redisconn.RunOnce(ctx, st.conn, sc, c.keys, c.args)
}
