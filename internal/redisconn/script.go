// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/sha1" // #nosec G505 -- how Redis names scripts
	"encoding/hex"

	"github.com/redis/rueidis"
)

// MaxPipeline is how many commands are sent together at most. rueidis moves pipelines of 2000 and
// more to another connection, on which they would overtake earlier commands.
const MaxPipeline = 512

// A Script is a Lua script and its name on the server. A server that was restarted, or is new in
// the cluster, does not know the script by its name and does not run it. It then receives the whole
// script. (rueidis' own Lua type would load the script into every node before each pipeline, and
// fail if one of them is down.)
//
// Other people's drivers have it from redisdriver.Run, so it has no other exported names.
type Script struct {
	Source string
	sha    string
}

// NewScript makes a script from its source.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) // #nosec G401
	return &Script{Source: source, sha: hex.EncodeToString(sum[:])}
}

// SHA1 is the script's name on the server.
func (s *Script) SHA1() string { return s.sha }

// RunScripts runs n scripts, all at once, and passes the results to put. Run returns the i-th script
// with its Redis keys and arguments; it may be called twice for each i, and so may put.
func RunScripts(ctx context.Context, conn *Conn, n int, run func(i int) (sc *Script, keys, args []string), put func(i int, result rueidis.RedisResult)) {
	var unknown []int
	pipeline(ctx, conn, n, func(i int) (string, rueidis.Completed) {
		sc, keys, args := run(i)
		return keys[0], sc.byName(conn, keys, args)
	}, func(i int, result rueidis.RedisResult) {
		if isNoScript(result) {
			unknown = append(unknown, i)
		}
		put(i, result)
	})
	pipeline(ctx, conn, len(unknown), func(i int) (string, rueidis.Completed) {
		sc, keys, args := run(unknown[i])
		return keys[0], sc.whole(conn, keys, args)
	}, func(i int, result rueidis.RedisResult) { put(unknown[i], result) })
}

// RunOnce is RunScripts for a single run, without its slices.
func RunOnce(ctx context.Context, conn *Conn, s *Script, keys, args []string) rueidis.RedisResult {
	return s.unlessUnknown(ctx, conn, conn.DoAbout(ctx, keys[:1], s.byName(conn, keys, args)), keys, args)
}

// RunBehind is RunOnce in one write with a preceding command. That command is of the same slot, and
// its answer is ignored.
func RunBehind(ctx context.Context, conn *Conn, ahead rueidis.Completed, s *Script, keys, args []string) rueidis.RedisResult {
	results := conn.DoMulti(ctx, ahead, s.byName(conn, keys, args))
	return s.unlessUnknown(ctx, conn, results[1], keys, args)
}

// unlessUnknown returns the result. If the server did not know the script's name, it returns the
// result of the whole script.
func (s *Script) unlessUnknown(ctx context.Context, conn *Conn, result rueidis.RedisResult, keys, args []string) rueidis.RedisResult {
	if isNoScript(result) {
		return conn.Do(ctx, s.whole(conn, keys, args))
	}
	return result
}

func (s *Script) byName(conn *Conn, keys, args []string) rueidis.Completed {
	return conn.Commands.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

func (s *Script) whole(conn *Conn, keys, args []string) rueidis.Completed {
	return conn.Commands.B().Eval().Script(s.Source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// pipeline sends n commands, each about a key, and passes the results to put. Each pipeline has a slice
// of its own, because rueidis may still send the commands of a slice after ctx has ended.
func pipeline(
	ctx context.Context, conn *Conn, n int, command func(int) (key string, command rueidis.Completed), put func(int, rueidis.RedisResult),
) {
	for first := 0; first < n; first += MaxPipeline {
		size := min(n-first, MaxPipeline)
		keys, commands := make([]string, size), make([]rueidis.Completed, size)
		for i := range commands {
			keys[i], commands[i] = command(first + i)
		}
		for i, result := range conn.DoMultiAbout(ctx, keys, commands...) {
			put(first+i, result)
		}
	}
}

// GetAll requests the values of Redis keys, all at once, and passes the results to put.
func GetAll(ctx context.Context, conn *Conn, keys []string, put func(int, rueidis.RedisResult)) {
	pipeline(ctx, conn, len(keys), func(i int) (string, rueidis.Completed) {
		return keys[i], conn.Commands.B().Get().Key(keys[i]).Build()
	}, put)
}

// isNoScript reports whether the server does not know a script by its name.
func isNoScript(result rueidis.RedisResult) bool {
	err, ok := rueidis.IsRedisErr(result.Error())
	return ok && err.IsNoScript()
}
