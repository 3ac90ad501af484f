// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"crypto/sha1" // #nosec G505 -- how Redis names scripts
	_ "embed"
	"encoding/hex"
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
// same order.
func (st *Store) run(ctx context.Context, sc *script, calls []call) []rueidis.RedisResult {
	b := st.commands.B()
	return redisconn.RunScript(ctx, st.commands, len(calls),
		func(i int) rueidis.Completed {
			c := calls[i]
			return b.Evalsha().Sha1(sc.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
		},
		func(i int) rueidis.Completed {
			c := calls[i]
			return b.Eval().Script(sc.source).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
		},
	)
}

// runOne is run for a single call.
func (st *Store) runOne(ctx context.Context, sc *script, c call) rueidis.RedisResult {
	return st.run(ctx, sc, []call{c})[0]
}
