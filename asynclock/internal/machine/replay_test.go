// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// TestModelsRuns replays what clients do in runs of docs/model/lock.pml and shares.pml. Spin has chosen the order of their
// steps, and docs/model/trace.sh has written them down. Each client is a machine here. After each step these have to be
// the same in both:
//
//   - the state: unused, waiting or holding, and under which of the client's owners;
//   - the token of the lease, and its trust, in ticks;
//   - what is sent: the kind of the request, its owner, its token, and whether it is uncertain, clean or
//     queues again; of shares, the mode and the permits;
//   - whether a tenure of readers admits others, how many permits a client keeps, and whether they are stale.
//
// The models and the machine differ by design in these points:
//
//   - The model's clients repeat requests at any time, and the machine at times with jitter. Here an alarm
//     or a wake-up lets the machine do it when the model does. A request or renewal that the machine makes
//     at another time is refused by the network, so nothing happens.
//   - The machine has margins. A tick is so long that they only matter within it: a lease is trusted up to
//     the tick in which its deadline is. That is exact for TTLs of 2 and 3 ticks, and grant TTLs up to 3.
//   - The model's clients have no patience. The machine takes ticks in an outage for pauses of the process.
//   - After a grant that came too late, the machine waits as its next owner at once, and the model when it
//     asks next.
//   - A holder whose trust has ended holds no more in the machine, and still "holds" with no trust in the
//     model until it notices.
//   - The release of a lease that was lost may be uncertain in the machine although it is not in the model,
//     because the lease remembers what was on its way at its beginning. That errs on the safe side.
//   - Whether a release is clean counts only where lock.pml has servers that forget.
//   - A tenure admits nobody in the machine as long as the store has not agreed to tell of waiters. Permits pass less often
//     there, because that is bounded.
//   - No run that is kept has this: a client is told of a waiter before it knows of its grant, and admits nobody. Nor this:
//     a renewal says that the client has permits, since the store has not answered yet that it has them back.
//   - The release of a reader's lease that was lost says its fence, not its number.
//   - If a downgrade has no answer when trust ends, the machine gives the key back at once.
//   - In the model a lease on two permits may give one back. A client that does so is followed no further.
//
// Not replayed: vacancies, which are the store's, the bounds of cohort handoff, the system MATE, whose client has two
// owners, and everything that the models do not have, such as futures or TryLock.
func TestModelsRuns(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/model/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files of runs (%v), want some", len(files), err)
	}
	seen := make(map[string]int)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range strings.Split(string(data), "run ")[1:] {
			header, lines, _ := strings.Cut(run, "\n")
			t.Run(header, func(t *testing.T) { replayRun(t, header, lines, seen) })
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%5d times: %s", seen[what], what)
	}
	for _, what := range wantInRuns {
		if seen[what] == 0 {
			t.Errorf("no run has this: %s", what)
		}
	}
}

// wantInRuns are what some run has to have, so that the replay proves something.
var wantInRuns = []string{
	"begins: unused to waiting",
	"asks: waiting to waiting",
	"leaves: waiting to unused",
	"loses: waiting to waiting",
	"hears WAITING: waiting to waiting",
	"hears GRANTED: waiting to holding",
	"hears GRANTED: waiting to waiting", // too late, W3
	"hears GRANTED: holding to holding", // confirmed, W6
	"hears GRANTED: holding to unused",  // granted anew, W6
	"reads a grant: waiting to holding",
	"reads a grant up to mark: waiting to waiting",      // W4
	"reads a grant that is too old: waiting to waiting", // W5
	"renews: holding to holding",
	"hears OK: holding to holding",
	"hears LOST: holding to unused",
	"loses: holding to holding",
	"passes: holding to holding",
	"expires: holding to unused",
	"unlocks: holding to unused",
	"unlocks: holding to waiting", // and queues again
	"released GRANTED: waiting to holding",
	"released WAITING: waiting to waiting",
	"repeats: waiting to waiting", // the queueing had no answer

	"reader reads a grant: waiting to holding",
	"reader hears GRANTED: holding to unused", // granted anew
	"reader joins: holding to holding",
	"reader hears REST OK: holding to holding", // downgraded
	"reader hears OK: holding to unused",       // too late
	"a tenure is closed: true",
	"a tenure is closed: false",
	"permits reads a grant: waiting to holding",
	"permits joins: holding to holding", // they pass inside the client
	"permits rests: holding to holding",
	"permits hears REST OK: holding to holding",
	"a block is stale: true",
	"a block is stale: false",
	"hears TOOMUCH: waiting to unused",
}

const tick = 100 * time.Second

// A replay is what one client does in a run of a model.
type replay struct {
	ttl, grantTTL int // in ticks
	forgets       bool
	shares        bool // it is a run of shares.pml
	ticks, lines  int  // lines in this tick
	seen          map[string]int
}

// A line is one step of the client.
type line struct {
	does  string
	args  []string
	sends []string // the kind of a request and its values; nil: nothing
	state string
	gen   int // the owner, from 0
	token int64
	trust int

	shares []int // of a run of shares.pml: mode, permits, fence, and whether the tenure is closed, and stale
}

func replayRun(t *testing.T, header, lines string, seen map[string]int) {
	r := &replay{ttl: 3, grantTTL: 2, shares: strings.HasPrefix(header, "shares "), seen: seen}
	for define := range strings.FieldsSeq(header) {
		_, _ = fmt.Sscanf(define, "-DTTL=%d", &r.ttl)
		_, _ = fmt.Sscanf(define, "-DG=%d", &r.grantTTL)
		r.forgets = r.forgets || define == "-DFORGET=1" && !r.shares
	}
	c := &replica{world: newWorld(t), run: r, sharing: sharing{wants: shareOf(modelExclusive, 1)}}
	c.host.several = r.shares
	for text := range strings.Lines(lines) {
		text = strings.TrimSpace(text)
		if text == "tick" {
			r.ticks++
			r.lines = 0
			c.trust = max(c.trust-1, 0)
			continue
		}
		r.lines++
		c.replay(parse(t, text), text)
		if t.Failed() {
			return
		}
	}
}

func parse(t *testing.T, text string) (l line) {
	did, state, _ := strings.Cut(text, " : ")
	did, sends, _ := strings.Cut(did, " > ")
	l.args = strings.Fields(did)
	l.does, l.args = l.args[0], l.args[1:]
	l.sends = strings.Fields(sends)
	if _, err := fmt.Sscan(state, &l.state, &l.gen, &l.token, &l.trust); err != nil {
		t.Fatalf("line %q: %v", text, err)
	}
	for _, value := range strings.Fields(state)[4:] {
		l.shares = append(l.shares, number(value))
	}
	return l
}

func (r *replay) duration(ticks int) time.Duration { return time.Duration(ticks) * tick }

func (r *replay) start() watchdog.Instant { return start.Add(time.Duration(r.ticks) * tick) }
