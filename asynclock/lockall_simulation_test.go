// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var crowds = flag.Int("crowds", 3, "how many crowds TestLockAllQueues makes of each policy")

// TestLockAllQueues compares how callers of several keys may wait for each other, in virtual time. It is the
// model of the workload "several crowd" of bench. docs/internals/several.md has what it says, of 20 crowds.
// Each crowd is the same in every run, so a limit that is not kept means that the model was changed.
func TestLockAllQueues(t *testing.T) {
	t.Parallel()
	const ever = time.Hour
	var before crowdFigures
	for _, p := range []struct {
		crowdPolicy
		ratio [2]float64 // the least and the most longest wait, in medians
		rate  [2]float64 // the least and the most locks, in those of the first policy
		stuck bool
	}{
		{crowdPolicy{name: "in turn, after two tries", tries: 2}, [2]float64{15, 25}, [2]float64{1, 1}, false},
		{crowdPolicy{name: "in turn", tries: 0}, [2]float64{14, 25}, [2]float64{0.85, 1}, false},
		{crowdPolicy{name: "first wait without a key", tries: 2, bare: true}, [2]float64{12, 25}, [2]float64{0.9, 1.1}, false},
		{crowdPolicy{name: "by age", tries: 2, aged: true}, [2]float64{6, 10}, [2]float64{1, 1.2}, false},
		{crowdPolicy{name: "by age, first wait without a key", tries: 2, aged: true, bare: true}, [2]float64{4, 8}, [2]float64{1, 1.2}, false},
		{crowdPolicy{name: "back off", backOff: true}, [2]float64{100, 1000}, [2]float64{0.8, 1}, false},
		{crowdPolicy{name: "all queues", whole: true}, [2]float64{1.5, 3}, [2]float64{0.95, 1.15}, false},
		{crowdPolicy{name: "all queues, overtaken for 20 ms", whole: true, overtaken: 20 * time.Millisecond}, [2]float64{3, 7}, [2]float64{1.6, 2.4}, false},
		{crowdPolicy{name: "all queues, always overtaken", whole: true, overtaken: ever}, [2]float64{6, 14}, [2]float64{1.6, 2.4}, false},
		{crowdPolicy{name: "all queues, keys as they come", places: true}, [2]float64{1.5, 3}, [2]float64{0.95, 1.15}, false},
		{crowdPolicy{name: "the same on four nodes", places: true, nodes: 4}, [2]float64{0, ever.Hours() * 1e4}, [2]float64{0, 0.1}, true},
	} {
		f := medianCrowd(p.crowdPolicy, *crowds)
		if before.rate == 0 {
			before = f
		}
		t.Logf("%-34s %5.0f a second, p50 %5.2f ms, p99 %6.2f ms, longest %7.2f ms, %6.2f x (at most %6.2f), %2.0f stuck, %4.1f commands",
			p.name, f.rate, f.p50, f.p99, f.longest, f.ratio, f.worst, f.stuck, f.commands)
		if stuck := f.stuck > 0; stuck != p.stuck {
			t.Errorf("%s: %v callers are stuck", p.name, f.stuck)
		}
		if f.ratio < p.ratio[0] || f.ratio > p.ratio[1] {
			t.Errorf("%s: the longest wait is %.2f medians, want %v", p.name, f.ratio, p.ratio)
		}
		if rate := f.rate / before.rate; rate < p.rate[0] || rate > p.rate[1] {
			t.Errorf("%s: the rate is %.2f of the first policy's, want %v", p.name, rate, p.rate)
		}
	}
}

// The crowd is that of bench/several.go. The times are such that the first policy, which was in use then, has the figures of
// docs/benchmarks/families.md: 1,084 locks a second, p50 5.29 ms, p99 69.1 ms, longest 102 ms.
const (
	crowdClients = 16
	crowdKeys    = 20
	crowdTaken   = 3
	crowdWindow  = 12 * time.Second
	crowdStuck   = 10 * time.Second
	crowdHold    = 1200 * time.Microsecond // time.Sleep of a millisecond, on a busy machine
	crowdNearest = 150 * time.Microsecond  // the least that a message takes
	crowdFarther = 90 * time.Microsecond   // what it takes longer, in the mean
	crowdCommand = 20 * time.Microsecond   // of the server
)

// A crowdPolicy is how a caller gets its keys. The zero policy waits for them in turn.
type crowdPolicy struct {
	name      string
	tries     int           // how often all missing keys are tried at once
	bare      bool          // nothing is held in the first wait
	aged      bool          // a caller's place in each queue is that of its first wait
	backOff   bool          // all keys are tried again after a pause, and nobody queues
	whole     bool          // one command waits in all queues, and holds nothing
	overtaken time.Duration // whole: those who have waited for less are overtaken if a key is not free
	places    bool          // a caller joins all queues, and holds each key from its turn on
	nodes     int           // the keys are on so many servers; 0: one
}

// crowdFigures are what bench measures. The times are in ms.
type crowdFigures struct{ rate, p50, p99, longest, ratio, worst, stuck, commands float64 }

// medianCrowd returns the median of each figure.
func medianCrowd(p crowdPolicy, n int) (f crowdFigures) {
	all := make([]crowdFigures, n)
	for seed := range all {
		all[seed] = newCrowd(p, uint64(seed)).run()
		f.worst = max(f.worst, all[seed].ratio)
	}
	median := func(of func(*crowdFigures) *float64) {
		slices.SortFunc(all, func(a, b crowdFigures) int { return int(1e6 * (*of(&a) - *of(&b))) })
		*of(&f) = *of(&all[n/2])
	}
	median(func(f *crowdFigures) *float64 { return &f.rate })
	median(func(f *crowdFigures) *float64 { return &f.p50 })
	median(func(f *crowdFigures) *float64 { return &f.p99 })
	median(func(f *crowdFigures) *float64 { return &f.longest })
	median(func(f *crowdFigures) *float64 { return &f.ratio })
	median(func(f *crowdFigures) *float64 { return &f.stuck })
	median(func(f *crowdFigures) *float64 { return &f.commands })
	return f
}

// A crowdRun is one crowd.
type crowdRun struct {
	crowdPolicy

	now      time.Duration
	coming   crowdEvents
	made     int // events
	random   *rand.Rand
	servers  []time.Duration // until when each is busy
	keys     []crowdKey
	waiting  []*crowdCall // whole: in all queues, the oldest first
	clients  []*crowdClient
	waits    []time.Duration
	commands int
}

type crowdKey struct {
	holder *crowdCall
	queue  []crowdPlace
}

type crowdPlace struct {
	ticket time.Duration
	call   *crowdCall
}

// A crowdClient has one connection to each server. It carries messages in their order.
type crowdClient struct {
	*crowdRun

	to, from []time.Duration // when the last message arrives
	call     *crowdCall      // nil: it has ended
}

// A crowdCall is one call of LockAll.
type crowdCall struct {
	*crowdClient

	keys   []int // sorted
	held   []bool
	asked  time.Duration
	ticket time.Duration // of its first wait; 0: none yet
	tries  int
}

func newCrowd(p crowdPolicy, seed uint64) *crowdRun {
	p.nodes = max(p.nodes, 1)
	c := &crowdRun{crowdPolicy: p, random: rand.New(rand.NewPCG(seed, 0)), servers: make([]time.Duration, p.nodes), keys: make([]crowdKey, crowdKeys)}
	for i := range crowdClients {
		cl := &crowdClient{crowdRun: c, to: make([]time.Duration, p.nodes), from: make([]time.Duration, p.nodes)}
		c.clients = append(c.clients, cl)
		c.at(time.Duration(i)*time.Microsecond, cl.begin)
	}
	return c
}

func (c *crowdRun) run() crowdFigures {
	for len(c.coming) > 0 && c.coming[0].at < crowdWindow+crowdStuck {
		e := c.coming.pop()
		c.now = e.at
		e.do()
	}
	stuck := 0
	for _, cl := range c.clients {
		if cl.call != nil {
			stuck++
			c.waits = append(c.waits, crowdStuck)
		}
	}
	slices.Sort(c.waits)
	n := len(c.waits)
	ms := func(i int) float64 { return float64(c.waits[i].Microseconds()) / 1e3 }
	f := crowdFigures{p50: ms(n / 2), p99: ms(n * 99 / 100), longest: ms(n - 1), stuck: float64(stuck)}
	f.rate, f.ratio, f.commands = float64(n)/crowdWindow.Seconds(), f.longest/f.p50, float64(c.commands)/float64(n)
	return f
}

// begin makes a client's next call.
func (cl *crowdClient) begin() {
	if cl.call = nil; cl.now >= crowdWindow {
		return
	}
	keys := cl.random.Perm(crowdKeys)[:crowdTaken]
	slices.Sort(keys)
	cl.call = &crowdCall{crowdClient: cl, keys: keys, held: make([]bool, len(keys)), asked: cl.now}
	switch {
	case cl.whole:
		cl.send(0, 1, func(call *crowdCall) {
			cl.waiting = append(cl.waiting, call)
			cl.grantWhole()
		})
	case cl.places:
		cl.each(cl.call.keys, cl.queue, nil)
	default:
		cl.call.gather()
	}
}

// gather goes on until all keys are held. It is gatherer.gatherAll.
func (call *crowdCall) gather() {
	missing := slices.Index(call.held, false)
	switch {
	case missing < 0:
		call.end()
	case call.backOff || call.tries < call.crowdPolicy.tries && crowdTaken-missing > 1:
		call.tries++
		call.each(call.missing(), call.try, call.tried)
	default:
		call.each(call.keys[missing:missing+1], call.queue, nil)
	}
}

// tried gives back what may not be held in the wait that follows.
func (call *crowdCall) tried() {
	refused := slices.Index(call.held, false)
	switch {
	case refused < 0:
		call.end()
	case call.backOff:
		call.giveBack(0, nil)
		pause := time.Millisecond << min(call.tries-1, 4)
		call.at(call.now+pause/2+time.Duration(call.random.Int64N(int64(pause))), call.gather)
	default:
		from := refused
		if call.bare && call.tries == 1 {
			from = 0
		}
		call.giveBack(from, nil)
		call.each(call.keys[refused:refused+1], call.queue, nil)
	}
}

// end holds the keys, gives them back, and waits for the answer to that.
func (call *crowdCall) end() {
	call.waits = append(call.waits, call.now-call.asked)
	call.at(call.now+crowdHold, func() { call.giveBack(0, call.begin) })
}

func (call *crowdCall) missing() (keys []int) {
	for i, key := range call.keys {
		if !call.held[i] {
			keys = append(keys, key)
		}
	}
	return keys
}

// giveBack gives back what is held of keys[from:].
func (call *crowdCall) giveBack(from int, then func()) {
	var keys []int
	for i := from; i < len(call.keys); i++ {
		if call.held[i] {
			call.held[i] = false
			keys = append(keys, call.keys[i])
		}
	}
	call.each(keys, call.release, then)
	if call.whole {
		call.send(0, 0, func(*crowdCall) { call.grantWhole() })
	}
}

// each sends a command for each key, those of a server together. Then follows when all are answered.
func (cl *crowdClient) each(keys []int, do func(*crowdCall, int), then func()) {
	servers := 0
	for node := range cl.nodes {
		mine := slices.DeleteFunc(slices.Clone(keys), func(key int) bool { return key%cl.nodes != node })
		if len(mine) == 0 {
			continue
		}
		servers++
		cl.send(node, len(mine), func(call *crowdCall) {
			for _, key := range mine {
				do(call, key)
			}
			if then == nil {
				return
			}
			cl.reply(node, func() {
				if servers--; servers == 0 {
					then()
				}
			})
		})
	}
}

// send has a server run so many commands, one message after the other.
func (cl *crowdClient) send(node, commands int, do func(*crowdCall)) {
	call := cl.call
	cl.to[node] = max(cl.to[node], cl.now+cl.latency())
	cl.at(cl.to[node], func() {
		cl.commands += commands
		cl.servers[node] = max(cl.servers[node], cl.now) + time.Duration(commands)*crowdCommand
		cl.at(cl.servers[node], func() { do(call) })
	})
}

func (cl *crowdClient) reply(node int, do func()) {
	cl.from[node] = max(cl.from[node], cl.now+cl.latency())
	cl.at(cl.from[node], do)
}

func (c *crowdRun) latency() time.Duration {
	return crowdNearest + time.Duration(c.random.ExpFloat64()*float64(crowdFarther))
}

// try grants a key that is free. That is known when the server's answer arrives.
func (c *crowdRun) try(call *crowdCall, key int) {
	if k := &c.keys[key]; k.holder == nil {
		k.holder = call
		call.reply(key%c.nodes, func() { call.held[slices.Index(call.keys, key)] = true })
	}
}

// queue grants a key, or has the call wait for it.
func (c *crowdRun) queue(call *crowdCall, key int) {
	if call.ticket == 0 || !c.aged {
		call.ticket = c.now
	}
	k := &c.keys[key]
	if k.holder == nil {
		c.grant(call, key)
		return
	}
	i := len(k.queue)
	for ; i > 0 && k.queue[i-1].ticket > call.ticket; i-- {
	}
	k.queue = slices.Insert(k.queue, i, crowdPlace{call.ticket, call})
}

func (c *crowdRun) grant(call *crowdCall, key int) {
	c.keys[key].holder = call
	call.reply(key%c.nodes, func() {
		call.held[slices.Index(call.keys, key)] = true
		if !c.places {
			call.gather()
		} else if !slices.Contains(call.held, false) {
			call.end()
		}
	})
}

// release passes a key to the first waiter.
func (c *crowdRun) release(_ *crowdCall, key int) {
	k := &c.keys[key]
	if k.holder = nil; len(k.queue) > 0 {
		first := k.queue[0].call
		k.queue = k.queue[1:]
		c.grant(first, key)
	}
}

// grantWhole grants all their keys to the waiters in turn, unless one is not free, or an older waiter that is not
// to be overtaken any more wants it.
func (c *crowdRun) grantWhole() {
	var wanted [crowdKeys]bool
	c.waiting = slices.DeleteFunc(c.waiting, func(call *crowdCall) bool {
		if !slices.ContainsFunc(call.keys, func(key int) bool { return wanted[key] || c.keys[key].holder != nil }) {
			for i, key := range call.keys {
				c.keys[key].holder, call.held[i] = call, true
			}
			call.reply(0, call.end)
			return true
		}
		for _, key := range call.keys {
			wanted[key] = wanted[key] || c.now-call.asked >= c.overtaken
		}
		return false
	})
}

// crowdEvents is a heap, the next event first.
type crowdEvents []crowdEvent

type crowdEvent struct {
	at     time.Duration
	number int
	do     func()
}

func (e crowdEvents) before(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}

func (c *crowdRun) at(at time.Duration, do func()) {
	c.made++
	c.coming = append(c.coming, crowdEvent{at, c.made, do})
	e := c.coming
	for i := len(e) - 1; i > 0 && e.before(i, (i-1)/2); i = (i - 1) / 2 {
		e[i], e[(i-1)/2] = e[(i-1)/2], e[i]
	}
}

func (e *crowdEvents) pop() crowdEvent {
	all := *e
	first, last := all[0], len(all)-1
	all[0], all[last] = all[last], crowdEvent{}
	all = all[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if all.before(child, least) {
				least = child
			}
		}
		if least == i {
			break
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
	*e = all
	return first
}
