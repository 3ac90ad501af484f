// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/sha1" // #nosec G505 -- how Redis names scripts
	_ "embed"
	"encoding/hex"
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

//go:embed handover.lua
var handoverLua string

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
	handoverScript = newScript(handoverLua)
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

// run makes the calls, all at once, and returns the results in the same order.
func (st *Store) run(ctx context.Context, calls []call) []rueidis.RedisResult {
	return redisconn.RunScript(ctx, st.commands, len(calls),
		func(i int) rueidis.Completed { return calls[i].evalsha(st.commands.B()) },
		func(i int) rueidis.Completed { return calls[i].eval(st.commands.B()) },
	)
}

// runOne is run for a single call, without its slices.
func (st *Store) runOne(ctx context.Context, c *call) rueidis.RedisResult {
	result := st.commands.Do(ctx, c.evalsha(st.commands.B()))
	if redisconn.IsNoScript(result) {
		result = st.commands.Do(ctx, c.eval(st.commands.B()))
	}
	return result
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
