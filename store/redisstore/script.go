// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"embed"
	"strings"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

//go:embed *.lua
var luaFiles embed.FS

// The scripts, as the server knows them.
var (
	acquireScript       = newScript("acquire.lua")
	acquireSharesScript = newScript("acquire_shares.lua")
	releaseFastScript   = newScript("release_fast.lua")
	releaseScript       = newScript("release.lua")
	releaseSharesScript = newScript("release_shares.lua")
	renewScript         = newScript("renew.lua")
	renewSharesScript   = newScript("renew_shares.lua")
	reassertScript      = newScript("reassert.lua")
	forceScript         = newScript("force.lua")
	inspectScript       = newScript("inspect.lua")
	limitScript         = newScript("limit.lua")
	writeNoteScript     = newScript("note_write.lua")
	readNoteScript      = newScript("note_read.lua")
)

// newScript makes a script of a file. A file that can't be expanded is a mistake in it, and
// stops every program and test right at its start.
func newScript(file string) *redisconn.Script {
	source, err := expand("<% include " + file + " %>")
	if err != nil {
		panic("redisstore: " + err.Error())
	}
	return redisconn.NewScript(source)
}

// run makes the calls, all at once, and returns the results in the same order.
func (st *Store) run(ctx context.Context, calls []call) []rueidis.RedisResult {
	defer st.activity.note()
	return redisconn.RunScripts(ctx, st.conn, len(calls), func(i int) (sc *redisconn.Script, keys, args []string) {
		keys, args = calls[i].words()
		return calls[i].script, keys, args
	})
}

// runOne is run for a single call, without its slices.
func (st *Store) runOne(ctx context.Context, c *call) rueidis.RedisResult {
	defer st.activity.note()
	keys, args := c.words()
	if c.withPrimer {
		return c.script.RunBehind(ctx, st.conn, primer(st.conn.Commands, keys[0]), keys, args)
	}
	return c.script.RunOnce(ctx, st.conn, keys, args)
}

// isCrossSlot reports whether the server is a Cluster's node and was asked for keys of
// several slots at once.
func isCrossSlot(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && strings.HasPrefix(err.Error(), "CROSSSLOT ")
}

// isMoving reports whether the server, or a script of ours, refused because the slot is being
// moved.
func isMoving(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && (err.IsTryAgain() || strings.Contains(err.Error(), "the slot is being moved"))
}
