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

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// results makes a result of rows, one per contestant and round.
func results(metrics []metric, rounds map[string][]float64) (r result) {
	r.Metrics = metrics
	for name, values := range rounds {
		o := outcome{Peer: name}
		for _, v := range values {
			o.Rounds = append(o.Rounds, row{v})
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
			map[string][]float64{"asynclock": {12}, mutexName: {1}, redissonName: {10}, "Curator": {20}},
			"1.2 ×: **not reached**",
		},
		{
			"the best peer has the highest rate", aRate,
			target{of: bestPeer, limit: 1},
			map[string][]float64{"asynclock": {12}, localName: {100}, redissonName: {10}, "Curator": {8}},
			"1.2 ×: reached",
		},
		{"without a value of ours", aTime, target{limit: 5}, map[string][]float64{mutexName: {1}}, "not measured"},
		{"without a value of theirs", aTime, target{of: mutexName, limit: 5}, map[string][]float64{"asynclock": {1}}, "not measured"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.target.judge(results(tt.metrics, tt.rounds)); got != tt.want {
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
	res.Peers = append(res.Peers, outcome{Peer: asynclockPeer.name, Rounds: []row{{110}}})
	res.Peers = append(res.Peers, outcome{Peer: redissonName, Rounds: []row{{220}}}, outcome{Peer: "Curator", Left: "not measured: no mvn"})
	res.load = workload{targets: []target{{of: mutexName, limit: 1.2}}, absent: "etcd has no such thing"}
	r := &report{families: true, rounds: 5, Results: []result{res}}
	const want = "| read alone | p50 110 µs | Redisson: 220 µs (2 ×)<br/>Curator: not measured: no mvn<br/>etcd has no such thing " +
		"| mutex: 100 µs | p50: at most 1.2 × mutex | 1.1 ×: reached |"
	if got := r.markdown(); !strings.Contains(got, want) {
		t.Errorf("got %s, want a row %s", got, want)
	}
}

// A run beside much other work says so.
func TestTheLoadBefore(t *testing.T) {
	for load, want := range map[string]int{"0.50 9.00 9.00": 0, "2.00 9.00": 0, "2.01 0.00": 1, "": 0} {
		r := &report{Machine: machine{Cores: 2, Load: load}}
		r.busy()
		if len(r.Notes) != want {
			t.Errorf("load %q: got %d notes, want %d", load, len(r.Notes), want)
		}
	}
}

// A failure of asynclock or a floor fails the run, and that of a peer is only reported.
func TestOnlyOwnFailuresFail(t *testing.T) {
	of := func(p peer) *report {
		o := outcome{Peer: p.name}
		o.fail(1, errors.New("some failure"), p)
		return &report{Results: []result{{Peers: []outcome{o}}}}
	}
	for _, p := range []peer{asynclockPeer, ourMutex, floorPeer} {
		if of(p).failed() == nil {
			t.Errorf("a failure of %s: got no error, want one", p.name)
		}
	}
	if err := of(redissonReader).failed(); err != nil {
		t.Errorf("a failure of a peer: got %v, want no error", err)
	}
}

// Each family's workload has asynclock and a target of a metric that it has. Names of peers are unique in it.
func TestThePlanOfFamilies(t *testing.T) {
	names := make(map[string]bool)
	for _, load := range families(fullFamilies) {
		if names[load.name] {
			t.Errorf("two are named %q", load.name)
		}
		names[load.name] = true
		peers := make(map[string]bool)
		for _, p := range load.peers {
			if peers[p.name] {
				t.Errorf("%s: two are named %q", load.name, p.name)
			}
			peers[p.name] = true
			if p.recipe != "" && load.inJava == nil {
				t.Errorf("%s: nothing measures %s", load.name, p.name)
			}
		}
		if !peers[asynclockPeer.name] || len(load.targets) == 0 || load.base != "" && !peers[load.base] {
			t.Errorf("%s: has no asynclock, no target, or no base", load.name)
		}
		for _, goal := range load.targets {
			if goal.metric >= len(load.metrics) || goal.of != "" && goal.of != bestPeer && !peers[goal.of] {
				t.Errorf("%s: its target is about what it has not", load.name)
			}
		}
	}
}

// The flags select workloads and peers of either plan.
func TestThePlanForFlags(t *testing.T) {
	for _, tt := range []struct {
		flags        flags
		loads, peers int // of the first workload
	}{
		{flags{only: "hot"}, 3, len(locks)},
		{flags{only: "handoff", among: "red,etcd"}, 1, 3},
		{flags{families: true, only: "several"}, 3, 4},
		{flags{families: true, only: "several", among: "Curator"}, 2, 1},
		{flags{families: true, only: "quorum"}, 4, len(quorumPeers)},
		{flags{families: true, only: "quorum hot", among: "redsync"}, 1, 1},
		{flags{only: "nothing"}, 0, 0},
	} {
		loads, _ := planFor(tt.flags)
		if len(loads) != tt.loads || tt.loads > 0 && len(loads[0].peers) != tt.peers {
			t.Errorf("%+v: got %v, want %d with %d peers", tt.flags, loads, tt.loads, tt.peers)
		}
	}
	if _, size := planFor(flags{rounds: 3}); size.rounds != 3 {
		t.Errorf("got %d rounds, want 3", size.rounds)
	}
}

// A peer whose server is not there is a row that says why. So is one that fails to open.
func TestAMissingPeerIsARow(t *testing.T) {
	load := workload{
		name: "some", metrics: aTime, rounds: 1, peers: []peer{redissonReader, curatorReader, asynclockPeer},
		inJava: func(context.Context, *stage) round {
			check(errors.New("no recipe"))
			return nil
		},
		prepare: func(context.Context, *stage) round { return func(context.Context) []float64 { return []float64{1} } },
	}
	res, err := measure(t.Context(), world{missing: map[string]string{"redisson": "no mvn"}}, load)
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
	got := scriptsOf(parseInfo("# Commandstats\r\ncmdstat_get:calls=7,usec=70,usec_per_call=10.00\r\n" +
		"cmdstat_evalsha:calls=2,usec=30,usec_per_call=15.00,rejected_calls=0\r\ncmdstat_eval:calls=1,usec=5,usec_per_call=5.00\r\n"))
	if want := (scriptTime{3, 35}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := catch(func() { scriptsOf(parseInfo("cmdstat_eval:calls=x")) }); err == nil {
		t.Error("what is no number: got no error")
	}
}

// The commands of a handoff are counted from when everybody waits until there are enough times.
func TestCommandsPerHandoff(t *testing.T) {
	sent := 0
	p := passes{sent: func(...string) int { return sent }, skipped: 2, times: make([]float64, 0, 3)}
	var more []bool
	for _, commands := range []int{10, 10, 2, 2, 5, 100} {
		sent += commands
		more = append(more, p.took(time.Now()))
	}
	if got := p.perHandoff(); got != 3 {
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
	sent := 0
	if got := perHandoff(10, func(...string) int { return sent }, func(passes int) { sent += 100 + 3*passes }); got != 3 {
		t.Errorf("got %v, want 3", got)
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
	if got := parseNumbers("1.5 2"); len(got) != 2 || got[0] != 1.5 {
		t.Errorf("got %v, want two numbers", got)
	}
	if err := catch(func() { parseNumbers("1.5 x") }); err == nil {
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
	s := &stage{world: world{redis: server.Addr().String()}}
	relay, m := s.startRelay()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", relay)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	far, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	const two = "*1\r\n$4\r\nPING\r\n*2\r\n$7\r\nEVALSHA\r\n$4\r\n*2\r\n\r\n"
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
	if err := s.close(t.Context()); err != nil {
		t.Errorf("got %v of a relay that ends", err)
	}
	if got := m.commands(); got != 2 {
		t.Errorf("got %d commands, want 2", got)
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

// The cost of a release is no figure if other scripts ran at the same time.
func TestReleasesAmongOtherScriptsAreNoFigure(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.MustParseURL(kit.Require(t, "ASYNCLOCK_REDIS_URL")))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	noisy := readers{
		take: func(context.Context, int, int) {},
		give: func(ctx context.Context, _, _ int) {
			for range released + 1 {
				check(client.Do(ctx, client.B().Eval().Script("return 1").Numkeys(0).Build()).Error())
			}
		},
	}
	if err := catch(func() { noisy.releaseTime(t.Context(), client, few) }); err == nil {
		t.Error("got a figure of more calls than releases")
	}
}

// Times of a crowd say how long a client waited, and how often others had the key meanwhile.
func TestFairness(t *testing.T) {
	perClient := [][]time.Duration{{1, 2, 9}, {3, 5, 7}, {4, 6}}
	if got := unfairness(perClient); got != 3 {
		t.Errorf("got %v turns of another, want 3", got)
	}
	if got := longestGap(perClient[0], 10); got != 7 {
		t.Errorf("got a gap of %v, want 7ns", got)
	}
	if got := longestGap(nil, 10); got != 10 {
		t.Errorf("without a key: got a gap of %v, want 10ns", got)
	}
	if got := unfairness(perClient[:1]); !math.IsNaN(got) {
		t.Errorf("of one client: got %v, want none", got)
	}
}

// A goroutine of a crowd asks for the name of each key anew, so that it may use each key once.
func TestEachKeyOnce(t *testing.T) {
	s := &stage{key: "key"}
	var keys []string
	m := &member{lock: func(_ context.Context, key string) (held, error) {
		keys = append(keys, key)
		time.Sleep(time.Millisecond)
		return unlocking(func(context.Context) error { return nil }), nil
	}}
	c := &crowd{members: []*member{m}, window: 20 * time.Millisecond, key: freshKey(s)}
	c.run(t.Context())
	if len(keys) < 2 || len(slices.Compact(keys)) != len(keys) {
		t.Errorf("got keys %q, want several, each once", keys)
	}
}

// As many servers start as the workload with the most needs, and only one of them may be far away.
func TestServersOfAQuorum(t *testing.T) {
	if got := mostServers(families(shortFamilies)); got != 5 {
		t.Errorf("got %d servers, want 5", got)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	address := listener.Addr().String()
	for _, distant := range []string{address, "elsewhere"} {
		conn, err := farTo(distant, time.Millisecond)(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if _, away := conn.(*farConn); away != (distant == address) {
			t.Errorf("%s is far away, connected to %s: got %v", distant, address, away)
		}
		_ = conn.Close()
	}
}
