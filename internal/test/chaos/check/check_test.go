// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/check"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// Times in these histories are small numbers of milliseconds.
const ms = history.Time(time.Millisecond)

var limits = check.Limits{Repair: 100 * time.Millisecond, Turns: 500 * time.Millisecond}

// A tale is a history told by hand.
type tale []history.Record

// held is a lease of key k, asked for and given at these times, and known to
// have been trusted until valid, when it was unlocked.
func (h tale) held(op string, token int64, asked, told, valid history.Time) tale {
	return append(h.lost(op, token, asked, told),
		history.Record{Kind: history.Ended, Op: op, Valid: valid * ms, Begin: valid * ms, End: (valid + 1) * ms, Unlocked: true})
}

// lost is a lease of which nothing more was heard.
func (h tale) lost(op string, token int64, asked, told history.Time) tale {
	return append(h, history.Record{
		Kind: history.Held, Op: op, Key: "k", How: "Lock", Begin: asked * ms, End: told * ms, Token: token, TTL: 50 * ms,
	})
}

func (h tale) failed(op string, asked, told history.Time) tale {
	return append(h, history.Record{Kind: history.Failed, Op: op, Key: "k", How: "Lock", Begin: asked * ms, End: told * ms, Error: "unreachable"})
}

func (h tale) wrote(op string, token, read, wrote int64) tale {
	return h.wroteTo("file", op, token, read, wrote)
}

func (h tale) wroteTo(resource, op string, token, read, wrote int64) tale {
	return append(h, history.Record{Kind: history.Write, Op: op, Key: "k", Resource: resource, Token: token, Read: read, Wrote: wrote})
}

func (h tale) fault(name string, begin, end history.Time, lossy bool) tale {
	return append(h, history.Record{Kind: history.Fault, Fault: name, Begin: begin * ms, End: end * ms, Lossy: lossy})
}

// forward is a step of the store's clock.
func (h tale) forward(at, step history.Time) tale {
	h = h.fault("clock set forward", at, at+1, true)
	h[len(h)-1].Step = step * ms
	return h
}

// wantRules checks which rules a history offends. Each rule counts once.
func (h tale) wantRules(t *testing.T, want ...string) check.Report {
	t.Helper()
	for i := range h {
		if err := h[i].Check(); err != nil {
			t.Fatalf("the test itself is wrong: %v", err)
		}
	}
	report := check.History(h, limits)
	var got []string
	for _, v := range report.Violations {
		got = append(got, v.Rule)
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; the first violation is %v", got, want, report.Violations[:min(1, len(report.Violations))])
	}
	return report
}

func TestGoodHistories(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]tale{
		"nothing":                           {},
		"one after another":                 tale{}.held("1", 5, 1, 2, 10).held("2", 6, 3, 11, 20),
		"an end and a beginning at once":    tale{}.held("1", 5, 1, 2, 10).held("2", 6, 3, 10, 20),
		"the later request is served first": tale{}.held("2", 5, 3, 4, 10).held("1", 6, 1, 11, 20),
		"answers that overtake each other":  tale{}.lost("1", 5, 1, 20).held("2", 6, 2, 10, 19),
		"a holder that was killed":          tale{}.lost("1", 5, 1, 2).held("2", 6, 3, 60, 70),
		"two writes of one lease":           tale{}.held("1", 5, 1, 2, 10).wrote("1", 5, 0, 1).wrote("1", 5, 1, 2),
		"a write of one who was overtaken":  tale{}.lost("1", 5, 1, 2).held("2", 6, 3, 60, 70).wrote("1", 5, 0, 1).wrote("2", 6, 1, 2),
		"one who is handed on what was lost": tale{}.held("w1/1", 5, 1, 2, 20).fault("FLUSHALL", 10, 11, true).held("w2/1", 90, 12, 13, 40).
			held("w1/2", 6, 15, 21, 30),
		"the same by way of another, before it is given anew": tale{}.held("w1/1", 5, 1, 2, 14).fault("FLUSHALL", 10, 11, true).
			held("w1/2", 6, 12, 15, 17).held("w1/3", 8, 16, 18, 40).held("w2/1", 90, 19, 20, 30),
		"an overlap that a loss explains":        tale{}.held("1", 5, 1, 2, 40).fault("FLUSHALL", 10, 11, true).held("2", 6, 12, 13, 50),
		"one whose first answer came after it":   tale{}.held("1", 5, 1, 12, 40).fault("FLUSHALL", 10, 11, true).held("2", 6, 13, 14, 50),
		"one who hears late of what was lost":    tale{}.held("1", 5, 1, 30, 32).fault("FLUSHALL", 10, 11, true).held("2", 6, 12, 13, 14),
		"one handed on by who has lost it":       tale{}.held("1", 5, 1, 2, 30).fault("FLUSHALL", 10, 11, true).held("2", 99, 12, 13, 14).held("3", 6, 15, 31, 40),
		"the same, asked for a little earlier":   tale{}.held("1", 5, 1, 2, 30).fault("FLUSHALL", 10, 11, true).held("2", 99, 12, 14, 15).held("3", 6, 13, 31, 40),
		"an overlap that a clock explains":       tale{}.held("1", 5, 1, 2, 40).forward(10, 27).held("2", 6, 12, 13, 50),
		"an overlap that two steps explain":      tale{}.held("1", 5, 1, 2, 40).forward(8, 20).forward(10, 7).held("2", 6, 12, 13, 50),
		"one who hears late of what ended early": tale{}.held("1", 5, 1, 30, 32).forward(10, 19).held("2", 6, 12, 13, 14),
		"one who is handed on what ended early": tale{}.held("w1/1", 5, 1, 2, 20).forward(10, 17).held("w2/1", 90, 12, 13, 40).
			held("w1/2", 6, 15, 21, 30),
		"a wait as long as the fault": tale{}.held("1", 5, 1, 2, 3).fault("server paused", 5, 400, false).held("2", 6, 4, 550, 560),
		"a wait among many faults":    forgotten(1190),
		"a request that failed":       tale{}.held("1", 5, 1, 2, 10).failed("2", 3, 90),
	} {
		t.Run(name, func(t *testing.T) { good.wantRules(t) })
	}
}

func TestBadHistories(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]struct {
		tale tale
		want []string
	}{
		"two trusted leases": {tale{}.held("1", 5, 1, 2, 20).held("2", 6, 3, 10, 30), []string{"model", "overlap"}},
		"one inside the other": {
			tale{}.held("1", 5, 1, 2, 90).held("2", 6, 3, 10, 11).held("3", 7, 12, 20, 30), []string{"model", "overlap"},
		},
		"one who is handed on what another client had": {
			tale{}.held("w1/1", 5, 1, 2, 20).fault("FLUSHALL", 10, 11, true).held("w2/1", 90, 12, 13, 40).held("w3/1", 6, 15, 21, 30), []string{"overlap"},
		},
		"one who is granted anew what was not lost": {
			tale{}.held("w1/1", 5, 1, 2, 4).fault("FLUSHALL", 10, 11, true).held("w1/2", 60, 12, 13, 40).held("w2/1", 90, 15, 21, 30), []string{"model", "overlap"},
		},
		"an overlap before the loss":      {tale{}.held("1", 5, 1, 2, 20).held("2", 6, 3, 10, 30).fault("FLUSHALL", 15, 16, true), []string{"model", "overlap"}},
		"an overlap long after the loss":  {tale{}.held("1", 5, 1, 2, 90).fault("FLUSHALL", 10, 11, true).held("2", 6, 3, 80, 100), []string{"model", "overlap"}},
		"one that no loss explains":       {tale{}.fault("FLUSHALL", 1, 2, true).held("1", 5, 3, 4, 20).held("2", 6, 5, 10, 30), []string{"model", "overlap"}},
		"a fault that loses nothing":      {tale{}.held("1", 5, 1, 2, 40).fault("server paused", 10, 11, false).held("2", 6, 12, 13, 50), []string{"model", "overlap"}},
		"an overlap longer than the step": {tale{}.held("1", 5, 1, 2, 40).forward(10, 26).held("2", 6, 12, 13, 50), []string{"model", "overlap"}},
		"an overlap after the step":       {tale{}.forward(1, 40).held("1", 5, 3, 4, 20).held("2", 6, 5, 10, 30), []string{"model", "overlap"}},
		"an overlap long after the step":  {tale{}.held("1", 5, 1, 2, 90).forward(10, 40).held("2", 6, 3, 80, 100), []string{"model", "overlap"}},
		"a step of another time": {
			tale{}.held("1", 5, 1, 2, 40).forward(10, 26).held("2", 6, 12, 13, 50).forward(60, 26), []string{"model", "overlap"},
		},
		"one who is handed on for longer than the step": {
			tale{}.held("w1/1", 5, 1, 2, 14).forward(10, 7).held("w2/1", 90, 12, 13, 14).held("w1/2", 6, 15, 21, 21), []string{"model", "token order"},
		},
		"one who hears late of what nobody lost": {tale{}.held("1", 5, 1, 30, 32).held("2", 6, 12, 13, 14), []string{"model"}},
		"a token given twice":                    {tale{}.held("1", 5, 1, 2, 3).held("2", 5, 4, 5, 6), []string{"model", "token order"}},
		"a token that falls":                     {tale{}.held("1", 6, 1, 2, 3).held("2", 5, 4, 5, 6), []string{"model", "token order"}},
		"a token that falls long after a loss":   {tale{}.fault("FLUSHALL", 1, 2, true).held("1", 6, 3, 4, 5).held("2", 5, 80, 81, 82), []string{"model", "token order"}},
		"a token that falls later":               {tale{}.held("1", 9, 1, 2, 3).held("2", 10, 4, 5, 6).held("3", 7, 8, 9, 10), []string{"model", "token order"}},
		"a stale write accepted": {
			tale{}.lost("1", 5, 1, 2).held("2", 6, 3, 60, 70).wrote("2", 6, 0, 1).wrote("1", 5, 1, 2), []string{"fencing"},
		},
		"a lost update": {
			tale{}.lost("1", 5, 1, 2).held("2", 6, 3, 60, 70).wrote("1", 5, 0, 1).wrote("2", 6, 0, 1), []string{"fencing"},
		},
		"two writers with one token": {
			tale{}.held("1", 5, 1, 2, 3).held("2", 5, 4, 5, 6).wrote("1", 5, 0, 1).wrote("2", 5, 1, 2), []string{"fencing", "model", "token order"},
		},
		"a write without a lease":          {tale{}.wrote("1", 5, 0, 1), []string{"fencing"}},
		"a waiter forgotten":               {tale{}.held("1", 5, 1, 2, 3).held("2", 6, 4, 200, 210), []string{"idle"}},
		"a failure that comes late":        {tale{}.held("1", 5, 1, 2, 3).failed("2", 4, 200), []string{"idle"}},
		"a waiter forgotten among faults":  {forgotten(1210), []string{"idle"}},
		"one forgotten between two faults": {forgotten(1400).fault("server paused", 1300, 1301, false), []string{"idle"}},
		"one who is passed over":           {starved(), []string{"waiting"}},
		"an answer that never came":        {tale{{Kind: history.Bye, Whom: "w", Asked: 2, Told: 1}}, []string{"waiting"}},
		"something left behind":            {tale{{Kind: history.Left, Error: "a goroutine"}}, []string{"leftovers"}},
		"an answer that came twice":        {tale{}.held("1", 5, 1, 2, 3).held("1", 6, 4, 5, 6), []string{"history"}},
		"an end without a beginning":       {tale{}.held("1", 5, 1, 2, 3)[1:], []string{"history"}},
		"a fault that was long before":     {tale{}.fault("server paused", 1, 2, false).held("1", 5, 200, 201, 202).held("2", 6, 203, 400, 401), []string{"idle"}},
	} {
		t.Run(name, func(t *testing.T) { bad.tale.wantRules(t, bad.want...) })
	}
}

// forgotten is a waiter that nobody serves until told. For the first second, a fault strikes every 50 ms.
func forgotten(told history.Time) tale {
	t := tale{}.held("1", 5, 1, 2, 3).held("2", 6, 4, told, 1500)
	for at := history.Time(50); at <= 1000; at += 50 {
		t = t.fault("server paused", at, at+1, false)
	}
	return t
}

// starved is many short leases while one request waits.
func starved() tale {
	t := tale{}.held("starved", 1000, 1, 700, 701)
	for i := range history.Time(69) {
		t = t.held(strconv.Itoa(int(i)), int64(i+1), 10*i+2, 10*i+3, 10*i+9)
	}
	return t
}

// TestOverlapIsCountedForItsFault: which fault explains it, and how many.
func TestOverlapIsCountedForItsFault(t *testing.T) {
	t.Parallel()
	history := tale{}.held("1", 5, 1, 2, 40).
		fault("server killed", 3, 4, false).fault("FLUSHALL", 10, 11, true).
		held("2", 6, 12, 13, 14).held("3", 7, 15, 16, 50)
	report := history.wantRules(t)
	want := []check.FaultFigures{
		{Name: "FLUSHALL", Count: 1, Excused: 2, Worst: 2 * time.Millisecond},
		{Name: "server killed", Count: 1, Worst: 9 * time.Millisecond},
	}
	if !slices.Equal(report.Faults, want) || report.Excused != 2 || report.Leases != 3 {
		t.Errorf("got %+v, %d excused of %d leases, want %+v, 2 of 3", report.Faults, report.Excused, report.Leases, want)
	}
}

// TestEachResourceIsJudgedByItself: it counts its own writes, and has seen only the
// tokens that were shown to it.
func TestEachResourceIsJudgedByItself(t *testing.T) {
	t.Parallel()
	leases := slices.Clip(tale{}.lost("1", 5, 1, 2).held("2", 6, 3, 60, 70))
	report := leases.wroteTo("sql", "1", 5, 0, 1).wroteTo("file", "2", 6, 0, 1).wroteTo("sql", "1", 5, 1, 2).wantRules(t)
	if want := map[string]int{"file": 1, "sql": 2}; !maps.Equal(report.Writes, want) {
		t.Errorf("writes: got %v, want %v", report.Writes, want)
	}
	report = leases.wroteTo("file", "1", 5, 0, 1).wroteTo("sql", "2", 6, 0, 1).wroteTo("sql", "1", 5, 1, 2).wantRules(t, "fencing")
	if len(report.Violations) != 1 || !strings.HasPrefix(report.Violations[0].Text, "sql accepted") {
		t.Errorf("got %v, want one, of the resource sql", report.Violations)
	}
}

// TestLossOfOneKeyExcusesNoOther: a damaged record is one key's.
func TestLossOfOneKeyExcusesNoOther(t *testing.T) {
	t.Parallel()
	h := tale{}.held("1", 5, 1, 2, 40).fault("foreign write", 10, 11, true).held("2", 6, 12, 13, 50)
	h[2].Key = "another"
	h.wantRules(t, "model", "overlap")
	h[2].Key = "k"
	h.wantRules(t)
}

// TestLongHistoriesAreJudgedInWindows: also one bad pair among thousands shows to
// the model, wherever windows meet.
func TestLongHistoriesAreJudgedInWindows(t *testing.T) {
	t.Parallel()
	var good tale
	for i := range history.Time(3000) {
		good = good.held(strconv.Itoa(int(i)), int64(i+1), 10*i+1, 10*i+2, 10*i+9)
	}
	good.wantRules(t)
	for _, at := range []int{0, 899, 900, 999, 1000, 2998} {
		bad := slices.Clone(good)
		bad[2*at+1].Valid += 5 * ms // beyond the beginning of the next
		bad[2*at+1].Begin += 5 * ms
		bad[2*at+1].End += 5 * ms
		bad.wantRules(t, "model", "overlap")
	}
}

// TestManyLostLeasesAreJudgedSoon: each may have ended at any time, and still the
// search has little to try.
func TestManyLostLeasesAreJudgedSoon(t *testing.T) {
	t.Parallel()
	h := tale{}.fault("FLUSHALL", 5, 45, true)
	for i := range history.Time(60) {
		h = h.held(strconv.Itoa(int(i)), int64(i+1), 1, 30, 40)
	}
	h.wantRules(t)
}

func TestFaultTellsForHowLongAWantedKeyHadNoLease(t *testing.T) {
	t.Parallel()
	h := tale{}.held("1", 10, 1, 2, 20).held("2", 11, 30, 100, 120).failed("3", 18, 19).fault("one", 15, 60, false).fault("none", 110, 119, false)
	for _, f := range check.History(h, limits).Faults {
		idle, after := time.Duration(0), time.Duration(0)
		if f.Name == "one" { // nobody waited from 19 to 30
			idle, after = 70*time.Millisecond, 40*time.Millisecond
		}
		if f.Idle != idle || f.After != after {
			t.Errorf("%s: got %v, %v after it, want %v, %v", f.Name, f.Idle, f.After, idle, after)
		}
	}
}
