// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// These tests measure what locks cost on the wire. Each test has a Redis server to itself and
// counts twice:
//
//   - Every command that a client sends, whatever it is for, as its connections
//     carry it: keep-alives, probes of the inbox and the rest included.
//   - The calls of EVALSHA and EVAL by INFO commandstats, to see that the server
//     agrees. Of other commands commandstats also counts those that scripts call,
//     which are no traffic; these two no script can call.

// A tally is the commands that all clients of a test have sent.
type tally struct {
	server *servers.Redis
	lines  []*faultconn.Line
}

// sent returns them by name.
func (y *tally) sent() map[string]int {
	total := make(map[string]int)
	for _, c := range y.lines {
		for name, n := range c.Commands() {
			total[name] += n
		}
	}
	return total
}

// scripts returns how many scripts the server has been asked to run.
func (y *tally) scripts(t *testing.T) (n int) {
	t.Helper()
	for line := range strings.Lines(ask(t, y.server, "INFO", "commandstats")) {
		rest, isEval := strings.CutPrefix(line, "cmdstat_eval:calls=")
		rest, isEvalsha := strings.CutPrefix(rest, "cmdstat_evalsha:calls=")
		if !isEval && !isEvalsha {
			continue
		}
		digits, _, _ := strings.Cut(rest, ",")
		calls, err := strconv.Atoi(digits)
		if err != nil {
			t.Fatal(err)
		}
		n += calls
	}
	return n
}

// settled returns what clients have sent and how many scripts the server has run,
// at a moment when, as far as can be seen, no script is on its way.
func (y *tally) settled(t *testing.T) (sent map[string]int, scripts int) {
	t.Helper()
	for range 500 { // clients that are never quiet can't be compared; then the numbers differ
		sent, scripts = y.sent(), y.scripts(t)
		time.Sleep(10 * time.Millisecond)
		again := y.sent()
		if y.scripts(t) == scripts && again["EVALSHA"] == sent["EVALSHA"] && again["EVAL"] == sent["EVAL"] {
			break
		}
	}
	return sent, scripts
}

// during returns the commands that are sent while f runs, by name and in all.
func (y *tally) during(t *testing.T, f func()) (sent map[string]int, total int) {
	t.Helper()
	before, scriptsBefore := y.settled(t)
	f()
	sent, scripts := y.settled(t)
	for name, n := range before {
		sent[name] -= n
	}
	maps.DeleteFunc(sent, func(_ string, n int) bool { return n == 0 })
	for _, n := range sent {
		total += n
	}
	if got, want := scripts-scriptsBefore, sent["EVALSHA"]+sent["EVAL"]; got != want {
		t.Errorf("scripts: the server has run %d, the clients have asked for %d", got, want)
	}
	return sent, total
}

// Whatever the number of clients, and however long they hold, a handoff costs one command
// to queue and one to release. Between two, a release has a primer besides.
func handoffsCostTheSameForMany(t *testing.T) {
	t.Run("held for no time", func(t *testing.T) { costOfHandoffs(t, 32, 40, 0, 2.2) })
	t.Run("held for longer", func(t *testing.T) { costOfHandoffs(t, 32, 8, 2*time.Millisecond, 2.2) })
	t.Run("between two", func(t *testing.T) {
		if sent := costOfHandoffs(t, 2, 40, 2*time.Millisecond, 3.2); sent["EXISTS"] == 0 {
			t.Error("got no primer, want some")
		}
	})
}

// costOfHandoffs has clients take a key so many times, hold it for so long, and send at
// most so many commands for each handoff. It returns what they have sent.
func costOfHandoffs(t *testing.T, clients, rounds int, hold time.Duration, atMost float64) map[string]int {
	// Commands that the clock triggers are not counted as part of a handoff, because their
	// number would depend on how busy the machine is. They are the keep-alives of two idle
	// connections, once a second, and a probe of the inbox. Nor is what opens the inbox's
	// connection: a client does that beside its first request, and some are late.
	pacedPerSecond := 3 * clients
	env, server := openOwnServer(t)
	y := &tally{server: server}
	all := make([]*asynclock.Client, clients)
	for i := range all {
		y.lines = append(y.lines, new(faultconn.Line))
		all[i] = env.clientOn(y.lines[i])
		env.unlock(env.lock(all[i], "key"))
	}
	start := time.Now()
	sent, total := y.during(t, func() {
		var working sync.WaitGroup
		for _, locks := range all {
			working.Go(func() {
				for range rounds {
					if err := locks.WithLock(env.ctx, "key", func(context.Context, *asynclock.Lease) error {
						time.Sleep(hold)
						return nil
					}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		working.Wait()
	})
	paced := sent["PING"] + sent["PUBLISH"]
	opening := sent["HELLO"] + sent["CLIENT"]
	perHandoff := float64(total-paced-opening) / float64(clients*rounds)
	t.Logf("%.3f commands per handoff: %v for %d", perHandoff, sent, clients*rounds)
	if limit := 3 * clients; opening > limit { // HELLO, CLIENT SETINFO, CLIENT SETINFO
		t.Errorf("to open connections: got %d commands, want at most %d", opening, limit)
	}
	if perHandoff > atMost {
		t.Errorf("commands per handoff: got %.3f, want at most %.1f", perHandoff, atMost)
	}
	if limit := pacedPerSecond * (1 + int(time.Since(start).Seconds())); paced > limit {
		t.Errorf("keep-alives and probes: got %d in %v, want at most %d", paced, time.Since(start), limit)
	}
	return sent
}

func TestCommandsOfAnUncontendedLock(t *testing.T) {
	t.Parallel()
	const rounds = 100
	env, server := openOwnServer(t)
	line := new(faultconn.Line)
	y := &tally{server: server, lines: []*faultconn.Line{line}}
	locks := env.clientOn(line)
	const connections = 3 // for commands, for messages, and for a caller that is alone
	kit.Eventually(t, "the connections", func() bool {
		env.unlock(env.lock(locks, "key"))
		greeted := line.Commands()
		return greeted["HELLO"] == connections && greeted["CLIENT"] == 2*connections
	})
	tell(t, env.again, func(env *Env) {
		sent, _ := y.during(t, func() {
			for range rounds {
				env.unlock(env.lock(locks, "key"))
			}
		})
		// A request without an answer in time is repeated, and its connection may be replaced.
		if got, want := sent["EVALSHA"], 2*rounds; got != want {
			env.mistimed("EVALSHA: got %d, want %d: one to lock, one to unlock", got, want)
		}
		// Besides, there is only what the clock brings: the inbox's probe, and
		// keep-alives of connections that have been idle for a second.
		for _, expected := range []string{"EVALSHA", "PUBLISH", "PING"} {
			delete(sent, expected)
		}
		if len(sent) > 0 {
			env.mistimed("other commands: got %v, want none", sent)
		}
	})
}

// Eight free keys cost a command each to lock, and one for all to unlock them. Each is one round trip. (With a guard after a
// failover one command locks all.)
func TestTripsOfSeveralFreeKeys(t *testing.T) {
	t.Parallel()
	const rounds, keys = 100, 8
	env, server := openOwnServer(t)
	line := new(faultconn.Line)
	y := &tally{server: server, lines: []*faultconn.Line{line}}
	locks := env.clientOn(line)
	names := make([]string, keys)
	for i := range names {
		names[i] = "key " + strconv.Itoa(i)
	}
	env.unlockAll(env.lockAll(locks, names))
	tell(t, env.again, func(env *Env) {
		before := line.Trips()
		sent, _ := y.during(t, func() {
			for range rounds {
				env.unlockAll(env.lockAll(locks, names))
			}
		})
		if got, want := sent["EVALSHA"], (keys+1)*rounds; got != want {
			env.mistimed("EVALSHA: got %d, want %d: one to lock each key, one to unlock all", got, want)
		}
		// A pipeline that the connection has to write in parts may count more than once. So do
		// keep-alives.
		perRound := float64(line.Trips()-before) / rounds
		t.Logf("%.2f round trips to lock and unlock %d keys", perRound, keys)
		if perRound > 3 {
			env.mistimed("round trips: got %.2f, want 2: one to lock all, one to unlock them", perRound)
		}
	})
}
