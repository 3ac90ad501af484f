// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// buckets is how many epochs a prefix of redisstore has.
const buckets = 256

// Acquaint writes the epochs, and what is beside them, of all buckets of a prefix of redisstore that have none, as if the server
// had granted keys for long, with TTLs of up to longest. Otherwise a server that is younger than that
// would grant nothing until it is older, because it may have forgotten such a lease. The epochs end
// with the test.
func (sv *Server) Acquaint(t testing.TB, prefix string, longest time.Duration) {
	t.Helper()
	if text, err := sv.Try("INFO", "replication"); err != nil || !strings.Contains(text, "master_replid:") {
		return // miniredis
	}
	const script = `
		local info = redis.call('INFO', 'replication')
		local time = redis.call('TIME')
		local ms = time[1] * 1000 + math.floor(time[2] / 1000)
		local id = string.match(info, 'master_replid:(%x+)')
		local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
		for _, key in ipairs(KEYS) do
			if redis.call('SET', key, string.format('%s %.0f %s 0 %.0f %.0f', id, ms, ARGV[1], ms + 80000000, ms), 'NX') then
				redis.call('SET', string.sub(key, 1, -2) .. 'g', string.format('%s %s %.0f %.0f - - 0 0 0', id, run, ms, ms))
			end
		end`
	var write, remove []rueidis.Completed
	for names := range sv.Epochs(t, prefix) {
		write = append(write, sv.Raw.B().Eval().Script(script).Numkeys(int64(len(names))).Key(names...).Arg(strconv.FormatInt(longest.Milliseconds(), 10)).Build())
		remove = append(remove, sv.Raw.B().Del().Key(names...).Key(causesOf(names)...).Build())
	}
	for _, result := range sv.Raw.DoMulti(t.Context(), write...) {
		if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
			t.Fatalf("writing epochs: %v", err)
		}
	}
	t.Cleanup(func() { // whoever lists keys has to read these, too
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		sv.Raw.DoMulti(ctx, remove...) // the server may have ended
	})
}

// causesOf returns the names of what is beside epochs.
func causesOf(epochs []string) []string {
	names := slices.Clone(epochs)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "e") + "g"
	}
	return names
}

// Epochs yields the names of all epochs of a prefix: as many at a time as one command may name.
func (sv *Server) Epochs(t testing.TB, prefix string) iter.Seq[[]string] {
	t.Helper()
	names := make([]string, buckets)
	for i := range names {
		names[i] = fmt.Sprintf("%s:{b%02x}:e", prefix, i)
	}
	atOnce := len(names)
	if strings.Contains(sv.Do(t, "INFO", "server"), "_mode:cluster") { // redis_mode, and server_mode in Valkey
		atOnce = 1 // each is in a slot of its own
	}
	return slices.Chunk(names, atOnce)
}
