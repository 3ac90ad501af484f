// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// results makes a result of rows, one per contestant and round.
func results(metrics []metric, rounds map[string][]float64) (r result) {
	r.Metrics = metrics
	for name, values := range rounds {
		o := outcome{Peer: name}
		for _, v := range values {
			o.Rounds = append(o.Rounds, []float64{v})
		}
		r.Peers = append(r.Peers, o)
	}
	return r
}

var (
	aTime = []metric{{Name: "p50", Unit: "µs"}}
	aRate = []metric{{"rate", "a second", true}}
)

// A target is compared to the median, or to the median of the ratios within a round.
func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name    string
		metrics []metric
		target  target
		rounds  map[string][]float64
		want    string
	}{
		{"a value at the limit", aTime, target{limit: 5}, map[string][]float64{"asynclock": {9, 5, 1}}, "reached"},
		{"a value above it", aTime, target{limit: 5}, map[string][]float64{"asynclock": {9, 6, 1}}, "**not reached**"},
		{"a value above it in one round", aTime, target{limit: 5, always: true}, map[string][]float64{"asynclock": {1, 6, 1}}, "**not reached**"},
		{"a value at the limit in each round", aTime, target{limit: 5, always: true}, map[string][]float64{"asynclock": {5, 1, 5}}, "reached"},
		{"a rate below it in one round", aRate, target{limit: 5, always: true}, map[string][]float64{"asynclock": {9, 4, 9}}, "**not reached**"},
		{"no round", aTime, target{limit: 5, always: true}, map[string][]float64{"asynclock": {math.NaN()}}, "not measured"},
		{"a rate at the limit", aRate, target{limit: 5}, map[string][]float64{"asynclock": {9, 5, 1}}, "reached"},
		{"a rate below it", aRate, target{limit: 5}, map[string][]float64{"asynclock": {9, 4, 1}}, "**not reached**"},
		{
			"a ratio, of the rounds and not of the medians", aTime,
			target{of: mutexName, limit: 1.1},
			map[string][]float64{"asynclock": {10, 20, 60}, mutexName: {10, 40, 20}},
			"1 ×: reached",
		},
		{
			"a ratio that is too large", aTime,
			target{of: mutexName, limit: 1.1},
			map[string][]float64{"asynclock": {12}, mutexName: {10}},
			"1.2 ×: **not reached**",
		},
		{
			"the best peer is the fastest, and no floor", aTime,
			target{of: bestPeer, limit: 1},
			map[string][]float64{"asynclock": {12}, mutexName: {1}, redissonName: {10}, curatorName: {20}},
			"1.2 ×: **not reached**",
		},
		{
			"the best peer has the highest rate", aRate,
			target{of: bestPeer, limit: 1},
			map[string][]float64{"asynclock": {12}, localName: {100}, redissonName: {10}, curatorName: {8}},
			"1.2 ×: reached",
		},
		{"without a value of ours", aTime, target{limit: 5}, map[string][]float64{mutexName: {1}}, "not measured"},
		{"without a value of theirs", aTime, target{of: mutexName, limit: 5}, map[string][]float64{"asynclock": {1}}, "not measured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.target.judge(results(tt.metrics, tt.rounds)).text(tt.target); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTargetsInWords(t *testing.T) {
	for want, goal := range map[string]struct {
		target
		metrics []metric
	}{
		"p50: at most 1.1 × mutex":           {target{of: mutexName, limit: 1.1}, aTime},
		"p50: at most 5 µs":                  {target{limit: 5}, aTime},
		"rate: at least 1,000,000 a second":  {target{limit: 1_000_000}, aRate},
		"p50: at most 5 µs in each round":    {target{limit: 5, always: true}, aTime},
		"ratio: at most 1.5":                 {target{limit: 1.5}, []metric{{Name: "ratio"}}},
		"rate: at least 0.25 × sync.RWMutex": {target{of: rwMutexName, limit: 0.25}, aRate},
	} {
		if got := goal.String(goal.metrics); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The longest wait counts, and one of ten seconds is stuck.
func TestWaitsOfACrowd(t *testing.T) {
	got := summarizeWaits([]float64{2000, 10e6, 1000, 10e6 - 1, 4000}, 2*time.Second)
	if want := []float64{2.5, 4, 10e3, 10e3, 2500, 1}; len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[3] != want[3] || got[4] != want[4] || got[5] != want[5] {
		t.Errorf("got %v, want about %v", got, want)
	}
	keys := strings.Fields(someKeys(rand.New(rand.NewPCG(1, 2)), "key"))
	slices.Sort(keys)
	if len(slices.Compact(keys)) != severalTaken || !strings.HasPrefix(keys[0], "key:") {
		t.Errorf("got %q, want %d different keys", keys, severalTaken)
	}
}

// The table has a row for each workload, says why a peer has no value, and has no floor among peers.
func TestTheTableOfFamilies(t *testing.T) {
	res := results(aTime, map[string][]float64{mutexName: {100}})
	res.Workload, res.Title = "read alone", "a title"
	res.Peers = append(res.Peers, outcome{Peer: asynclockPeer.name, Rounds: [][]float64{{110}}})
	res.Peers = append(res.Peers, outcome{Peer: redissonName, Rounds: [][]float64{{220}}}, outcome{Peer: curatorName, Left: "not measured: no mvn"})
	c := comparison{targets: []target{{of: mutexName, limit: 1.2}}, absent: "etcd has no such thing"}
	r := &familyReport{rounds: 5, rows: []familyRow{{c, res}}}
	const want = "| read alone | p50 110 µs | Redisson: 220 µs (2 ×)<br/>Curator: not measured: no mvn<br/>etcd has no such thing " +
		"| mutex: 100 µs | p50: at most 1.2 × mutex | 1.1 ×: reached |"
	if got := r.markdown(); !strings.Contains(got, want) {
		t.Errorf("got %s, want a row %s", got, want)
	}
}

// A run beside much other work says so.
func TestTheLoadBefore(t *testing.T) {
	for load, want := range map[string]int{"0.50 9.00 9.00": 0, "2.00 9.00": 0, "2.01 0.00": 1, "": 0} {
		r := &familyReport{machine: machine{Cores: 2}}
		r.busy(load)
		if len(r.notes) != want || r.machine.Load != load {
			t.Errorf("load %q: got %d notes, want %d", load, len(r.notes), want)
		}
	}
}

// A failure of asynclock or a floor fails the run, and that of a peer is only reported.
func TestOnlyOwnFailuresFail(t *testing.T) {
	of := func(name string) *familyReport {
		o := outcome{Peer: name}
		o.fail(1, errors.New("some failure"))
		return &familyReport{rows: []familyRow{{result: result{Peers: []outcome{o}}}}}
	}
	for _, name := range []string{asynclockPeer.name, mutexName, floorPeer.name} {
		if of(name).failed() == nil {
			t.Errorf("a failure of %s: got no error, want one", name)
		}
	}
	if err := of(redissonName).failed(); err != nil {
		t.Errorf("a failure of a peer: got %v, want no error", err)
	}
}

// Every comparison has asynclock and a target of a metric that it has. Names of peers are unique in it.
func TestThePlanOfFamilies(t *testing.T) {
	names := make(map[string]bool)
	for _, c := range familyPlan(fullFamilies, "") {
		if names[c.name] {
			t.Errorf("two are named %q", c.name)
		}
		names[c.name] = true
		peers := make(map[string]bool)
		for _, one := range c.contestants {
			if peers[one.name] {
				t.Errorf("%s: two are named %q", c.name, one.name)
			}
			peers[one.name] = true
			if one.recipe != "" && c.inJava == nil {
				t.Errorf("%s: nothing measures %s", c.name, one.name)
			}
		}
		if !peers[asynclockPeer.name] || len(c.targets) == 0 || c.base != "" && !peers[c.base] {
			t.Errorf("%s: has no asynclock, no target, or no base", c.name)
		}
		for _, goal := range c.targets {
			if goal.metric >= len(c.metrics) || goal.of != "" && goal.of != bestPeer && !peers[goal.of] {
				t.Errorf("%s: its target is about what it has not", c.name)
			}
		}
	}
	if got := len(familyPlan(fullFamilies, "several")); got != 3 {
		t.Errorf("those named several: got %d, want 3", got)
	}
}

// A contestant whose server is not there is a row that says why. So is one that fails to open.
func TestAMissingPeerIsARow(t *testing.T) {
	a := arena{missing: map[string]string{"redisson": "no mvn"}}
	c := comparison{
		workload:    workload{name: "some", metrics: aTime, rounds: 1},
		contestants: []contestant{inRedisson(redissonName, "read", ""), inCurator("read", ""), {peer: peer{name: asynclockPeer.name}}},
		inJava:      func(context.Context, arena, string, string) (runner, error) { return nil, errors.New("no recipe") },
		inGo: func(context.Context, arena, peer) (runner, error) {
			return steps{func(context.Context) ([]float64, error) { return []float64{1}, nil }, func(context.Context) error { return nil }}, nil
		},
	}
	res, err := measure(t.Context(), newProgress(), world{}, c.on(a), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"not measured: no mvn", "failed in round 0: no recipe", ""} {
		if got := res.Peers[i].Left; got != want {
			t.Errorf("%s: got %q, want %q", res.Peers[i].Peer, got, want)
		}
	}
	if len(res.Peers[2].Rounds) != 1 {
		t.Errorf("the one that works: got %d rounds, want 1", len(res.Peers[2].Rounds))
	}
}

// Only scripts count, of all kinds.
func TestTimeOfScripts(t *testing.T) {
	got, err := parseScripts("# Commandstats\r\ncmdstat_get:calls=7,usec=70,usec_per_call=10.00\r\n" +
		"cmdstat_evalsha:calls=2,usec=30,usec_per_call=15.00,rejected_calls=0\r\ncmdstat_eval:calls=1,usec=5,usec_per_call=5.00\r\n")
	if want := (scriptTime{3, 35}); got != want || err != nil {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := parseScripts("cmdstat_eval:calls=x"); err == nil {
		t.Error("what is no number: got no error")
	}
}

// The commands of a handoff are counted from when everybody waits until there are enough times.
func TestCommandsPerHandoff(t *testing.T) {
	m := new(meter)
	p := passes{meter: m, skipped: 2, times: make([]float64, 0, 3)}
	var more []bool
	for _, commands := range []int64{10, 10, 2, 2, 5, 100} {
		m.commands.Add(commands)
		more = append(more, p.took(time.Now()))
	}
	if got := p.commands(); got != 3 {
		t.Errorf("got %v commands per handoff, want 3", got)
	}
	for i, want := range []bool{true, true, true, true, false, false} {
		if more[i] != want {
			t.Errorf("take %d: more are wanted: got %v, want %v", i+1, more[i], want)
		}
	}
}

// Commands by which clients come and go are not those of handoffs.
func TestCommandsOfHandoffsInAnotherProcess(t *testing.T) {
	m := new(meter)
	got, err := perHandoff(10, m, func(passes int) error {
		m.commands.Add(int64(100 + 3*passes))
		return nil
	})
	if got != 3 || err != nil {
		t.Errorf("got %v, %v, want 3", got, err)
	}
	failure := errors.New("the JVM has ended")
	for fails := range 2 {
		calls := 0
		got, err := perHandoff(10, m, func(int) error {
			if calls++; calls > fails {
				return failure
			}
			return nil
		})
		if !math.IsNaN(got) || !errors.Is(err, failure) {
			t.Errorf("call %d fails: got %v, %v, want its error", fails+1, got, err)
		}
	}
}

// An answer of the JVM is a value or an error, encoded.
func TestAnswersOfJava(t *testing.T) {
	if got, err := parseAnswer("ok 1.5+2"); got != "1.5 2" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := parseAnswer("error SomeException some+message"); err == nil || !strings.Contains(err.Error(), "some message") {
		t.Errorf("an exception: got %v, want its message", err)
	}
	if got, err := parseNumbers("1.5 2"); len(got) != 2 || got[0] != 1.5 || err != nil {
		t.Errorf("got %v, %v, want two numbers", got, err)
	}
	if _, err := parseNumbers("1.5 x"); err == nil {
		t.Error("what is no number: got no error")
	}
}

// A relay passes everything on, counts commands, and ends with its connections.
func TestTheRelayCounts(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	r, err := startRelay(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	far, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	const two = "*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
	if _, err := client.Write([]byte(two)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(two))
	for n := 0; n < len(got); {
		more, err := far.Read(got[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += more
	}
	if string(got) != two {
		t.Errorf("the server got %q, want %q", got, two)
	}
	r.close()
	if commands := r.meter.commands.Load(); commands != 2 {
		t.Errorf("got %d commands, want 2", commands)
	}
	if _, err := client.Read(got); err == nil {
		t.Error("the client's connection outlived the relay")
	}
}

func TestQuantiles(t *testing.T) {
	got := quantiles([]float64{9, 1, 5}, 0, 0.25, 0.5, 0.75, 1)
	if want := []float64{1, 3, 5, 7, 9}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := quantiles([]float64{1, 2, 3, 4}, 0.5)[0]; got != 2.5 {
		t.Errorf("the median of an even number: got %v, want 2.5", got)
	}
	if got := quantiles(nil, 0.5)[0]; !math.IsNaN(got) {
		t.Errorf("of nothing: got %v, want none", got)
	}
}

func TestAmounts(t *testing.T) {
	for want, v := range map[string]float64{"1,234,568": 1234567.9, "12,345": 12345, "999": 999, "1.5": 1.5, "–": math.NaN()} {
		if got := amount(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}
