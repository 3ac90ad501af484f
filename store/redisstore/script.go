// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"embed"
	"strings"
	"sync"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

//go:embed *.lua
var luaFiles embed.FS

// The scripts, as the server knows them.
var (
	takeScript          = newScript("take.lua")
	leaveScript         = newScript("leave.lua")
	acquireScript       = newScript("acquire.lua")
	acquireSharesScript = newScript("acquire_shares.lua")
	releaseFastScript   = newScript("release_fast.lua")
	releaseScript       = newScript("release.lua")
	releaseSharesScript = newScript("release_shares.lua")
	renewFastScript     = newScript("renew_fast.lua")
	renewScript         = newScript("renew.lua")
	renewSharesScript   = newScript("renew_shares.lua")
	reassertScript      = newScript("reassert.lua")
	forceScript         = newScript("force.lua")
	inspectScript       = newScript("inspect.lua")
	limitScript         = newScript("limit.lua")
	writeNoteScript     = newScript("note_write.lua")
	readNoteScript      = newScript("note_read.lua")
	announceScript      = newScript("announce.lua")
	graceScript         = newScript("grace.lua")
	graceEndScript      = newScript("grace_end.lua")
	graceWakeScript     = newScript("grace_wake.lua")
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

// runs are the slices of run.
var runs = sync.Pool{New: func() any { return new([]redisdriver.Run) }}

// run makes the calls, all at once, and returns the results in the same order.
func (st *Store) run(ctx context.Context, calls []call) []redisdriver.Result {
	defer st.activity.note()
	if len(calls) == 0 {
		return nil
	}
	batch := runs.Get().(*[]redisdriver.Run)
	for i := range calls {
		*batch = append(*batch, calls[i].run())
	}
	replies := st.conn.EvalAll(ctx, *batch)
	clear(*batch)
	if *batch = (*batch)[:0]; cap(*batch) <= maxPooled {
		runs.Put(batch)
	}
	for i := range replies {
		if isAgain(replies[i]) {
			replies[i] = st.runOne(ctx, &calls[i])
		}
	}
	return replies
}

// runOne is run for a single call, without its slices.
func (st *Store) runOne(ctx context.Context, c *call) redisdriver.Result {
	defer st.activity.note()
	result := st.conn.Eval(ctx, c.run())
	for isAgain(result) {
		result = st.conn.Eval(ctx, c.run())
	}
	return result
}

// isAgain reports whether a script has dropped some of those who have died, and nothing else was done. The next run drops
// others. So no step takes long, however many have died.
func isAgain(result redisdriver.Result) bool {
	n, ok := result.Integer()
	return ok && n == replyAgain
}

// run is how the call is made.
func (c *call) run() redisdriver.Run {
	keys, args := c.words()
	return redisdriver.Run{Keys: keys, Args: args, Ahead: c.withPrimer, Script: c.script}
}

// isCrossSlot reports whether the server is a Cluster's node and was asked for keys of
// several slots at once.
func isCrossSlot(result redisdriver.Result) bool {
	text, ok := result.Refusal()
	return ok && strings.HasPrefix(text, "CROSSSLOT ")
}

// isMoving reports whether the server, or a script of ours, refused because the slot is being
// moved.
func isMoving(result redisdriver.Result) bool {
	text, ok := result.Refusal()
	return ok && (strings.HasPrefix(text, "TRYAGAIN") || strings.Contains(text, "the slot is being moved"))
}
