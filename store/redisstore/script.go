// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
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

// newScript replaces the lines that ask for epoch.lua and promote.lua by them.
func newScript(source string) *redisconn.Script {
	source = strings.Replace(source, "--include epoch.lua\n", epochLua, 1)
	source = strings.Replace(source, "--include promote.lua\n", promoteLua, 1)
	return redisconn.NewScript(source)
}

// run runs a script once per call, all at once, and returns the results in the
// same order.
func (st *Store) run(ctx context.Context, sc *redisconn.Script, calls []call) []rueidis.RedisResult {
	return sc.Run(ctx, st.commands, len(calls), func(i int) (keys, args []string) { return calls[i].words() })
}

// runOne is run for a single call, without its slices.
func (st *Store) runOne(ctx context.Context, sc *redisconn.Script, c *call) rueidis.RedisResult {
	keys, args := c.words()
	return sc.RunOnce(ctx, st.commands, keys, args)
}

func isTryAgain(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && err.IsTryAgain()
}
