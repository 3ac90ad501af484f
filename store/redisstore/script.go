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

//go:embed lock.lua
var lockLua string

//go:embed acquire.lua
var acquireLua string

//go:embed release_fast.lua
var releaseFastLua string

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
	acquireScript     = newScript(acquireLua)
	releaseFastScript = newScript(releaseFastLua)
	releaseScript     = newScript(releaseLua)
	renewScript       = newScript(renewLua)
	reassertScript    = newScript(reassertLua)
	forceScript       = newScript(forceLua)
	inspectScript     = newScript(inspectLua)
)

// newScript replaces the lines that ask for epoch.lua and lock.lua by them.
func newScript(source string) *redisconn.Script {
	source = strings.Replace(source, "--include epoch.lua\n", epochLua, 1)
	source = strings.Replace(source, "--include lock.lua\n", lockLua, 1)
	return redisconn.NewScript(source)
}

// run makes the calls, all at once, and returns the results in the same order.
func (st *Store) run(ctx context.Context, calls []call) []rueidis.RedisResult {
	defer st.pulse.beats()
	return redisconn.RunScripts(ctx, st.conn.Commands, len(calls), func(i int) (sc *redisconn.Script, keys, args []string) {
		keys, args = calls[i].words()
		return calls[i].script, keys, args
	})
}

// runOne is run for a single call, without its slices.
func (st *Store) runOne(ctx context.Context, c *call) rueidis.RedisResult {
	defer st.pulse.beats()
	keys, args := c.words()
	if c.behind {
		return c.script.RunBehind(ctx, st.conn.Commands, forerunner(st.conn.Commands, keys[0]), keys, args)
	}
	return c.script.RunOnce(ctx, st.conn.Commands, keys, args)
}

// isCrossSlot reports whether the server is a Cluster's node and was asked for keys of
// several slots at once.
func isCrossSlot(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && strings.HasPrefix(err.Error(), "CROSSSLOT ")
}

func isTryAgain(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && err.IsTryAgain()
}
