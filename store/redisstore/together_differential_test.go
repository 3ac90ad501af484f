// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A crew is the states of several keys, in one bucket of which there is one epoch.
type crew struct {
	all    []*differential
	script *redisconn.Script
	done   map[string]int
}

func newCrew(t *testing.T, sv *server, file string) *crew {
	t.Helper()
	c := &crew{done: make(map[string]int)}
	for i := range 3 {
		d := newDifferential(t, sv)
		d.told += strconv.Itoa(i)
		for k := range d.keys[:5] {
			d.keys[k] += strconv.Itoa(i)
		}
		c.all = append(c.all, d)
	}
	c.script = c.all[0].still(t, "<% include "+file+" %>")
	return c
}

// make makes the states of all keys, and of the epoch.
func (c *crew) make(t *rapid.T, states []differentialState, epoch []string) {
	t.Helper()
	var commands [][]string
	for _, d := range c.all {
		commands = append(commands, append([]string{"DEL", d.told}, d.keys...))
	}
	commands = append(append(commands, slices.Concat(states...)...), epoch)
	c.all[0].ask(t, commands...)
}

// run runs a script that has the Redis keys of several, and returns what it answers.
func (c *crew) run(t *rapid.T, script *redisconn.Script, keys, args []string) []string {
	t.Helper()
	return c.all[0].ask(t, slices.Concat([]string{"EVAL", script.Source, strconv.Itoa(len(keys))}, keys, args))[0]
}

func (c *crew) read(t *rapid.T) (all []string) {
	t.Helper()
	for _, d := range c.all {
		all = append(all, d.read(t)...)
	}
	return all
}

// refusals are the numbers that follow the first in a reply.
func refusals(t *rapid.T, reply []string) map[int]bool {
	t.Helper()
	refused := make(map[int]bool)
	for _, word := range reply[min(1, len(reply)):] {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("reply: got %q, want numbers", reply)
		}
		refused[n-1] = true
	}
	return refused
}

// take.lua says again what acquire.lua does for free keys. On any state, and for any relation of its
// requests, it grants a request as acquire.lua would have done, or leaves its key as it is.
func TestTheTakeDoesAsTheRest(t *testing.T) {
	onOneServer(t, func(t *testing.T, sv *server) {
		c := newCrew(t, sv, "take.lua")
		kinds := []string{"all", "some", "none", "vacancy", "nothing there", "the same key twice"}
		if c.all[0].id == "" {
			kinds = nil // nothing is granted
		}
		drawEach(t, 5, c.done, kinds, c.compareTakes)
	})
}

func (c *crew) compareTakes(t *rapid.T) {
	d := c.all[0]
	var states []differentialState
	for _, d := range c.all {
		states = append(states, slices.DeleteFunc(d.drawState(t), func(words []string) bool { return words[1] == d.keys[5] }))
	}
	for i, st := range states {
		lock, counter := c.all[i].keys[0], c.all[i].keys[3]
		at := slices.IndexFunc(st, func(words []string) bool { return words[0] == "SET" && words[1] == lock })
		switch pick := rapid.SampledFrom([]string{"any", "any", "any", "nothing", "nothing", "counter", "vacancy", "ahead"}).Draw(t, "state"); {
		case pick == "nothing":
			states[i] = nil
		case pick == "counter":
			states[i] = differentialState{{"SET", counter, strconv.Itoa(before)}}
		case pick == "vacancy":
			states[i] = differentialState{{"SET", lock, vacancyOf(before)}}
		case pick == "ahead":
			states[i] = differentialState{{"SET", lock, vacancyOf(ahead)}}
		case at >= 0 && isVacancy(st[at][2]): // beside it there is nothing else
			states[i] = differentialState{st[at]}
		}
	}
	history := d.id
	epoch := []string{"SET", d.keys[5], fmt.Sprint(d.id, " ", nowMS-1, " 2000000 0 ", nowMS+hours, " ", nowMS-1)}
	vacant := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 3).Draw(t, "those for vacancies")
	least, guarded, timely := differentialTime, true, true // for all, and for the others
	if len(vacant) == 0 {                                  // theirs would be the token
		least -= rapid.SampledFrom([]int{0, 1, 1000, 900_000}).Draw(t, "ago")
	}
	switch rapid.SampledFrom([]string{"", "", "", "", "", "", "", "history", "epoch", "no epoch", "list", "grace", "set back", "late"}).Draw(t, "guard") {
	case "history":
		history, guarded = "abc", false
	case "epoch":
		epoch[2], guarded = "abc 1 2000000 0 1 1", false
	case "no epoch":
		epoch, guarded = []string{"DEL", d.keys[5]}, false
	case "list":
		epoch, guarded = []string{"RPUSH", d.keys[5], "x"}, false
	case "grace":
		epoch[2] = fmt.Sprint(d.id, " ", nowMS+1, " 2000000 0 ", nowMS+hours, " ", nowMS-1)
		timely = false
	case "set back":
		least, vacant, timely = differentialTime+1, nil, false
	case "late":
		least, vacant, timely = differentialTime-900_001, nil, false
	}
	others := rapid.SliceOfN(rapid.IntRange(0, 2), map[bool]int{true: 1}[len(vacant) == 0], 3).Draw(t, "the others")
	requests := slices.Concat(vacant, others)
	var keys, beside []string
	args := []string{history, strconv.Itoa(least), "1"}
	for n, i := range requests {
		keys = append(keys, c.all[i].keys[0])
		if n >= len(vacant) {
			beside = append(beside, c.all[i].keys[1], c.all[i].keys[3], c.all[i].keys[4])
		}
		args = append(args, fmt.Sprint("me", n, " pme t my self"), "1500000", "1")
	}
	c.make(t, states, epoch)
	untouched := c.read(t)
	reply := c.run(t, c.script, slices.Concat(keys, beside, []string{d.keys[5]}), args)
	after := c.read(t)
	if !guarded || d.id == "" {
		if !slices.Equal(reply, []string{"0"}) || !slices.EqualFunc(after, untouched, alike) {
			t.Fatalf("without a guard: got %q, want 0\ngot  %q\nwant %q\nargs %q", reply, after, untouched, args)
		}
		return
	}
	if want := map[bool]string{true: "1", false: strconv.Itoa(differentialTime)}[len(others) == 0]; reply[0] != want {
		t.Fatalf("number: got %q, want %s", reply, want)
	}
	refused := refusals(t, reply)
	for n := len(vacant); n < len(requests) && !timely; n++ {
		if !refused[n] {
			t.Fatalf("take.lua grants request %d in the grace or by a wrong clock\nreply %q", n, reply)
		}
	}
	c.make(t, states, []string{"SET", d.keys[5], fmt.Sprint(d.id, " ", nowMS-1, " 2000000 0 ", nowMS+hours, " ", nowMS-1)}) // acquire.lua grants in no grace
	granted := make(map[int]bool)
	for n, i := range requests {
		if refused[n] {
			if granted[i] {
				c.done["the same key twice"]++
			}
			continue
		}
		granted[i] = true
		one := []string{fmt.Sprint("me", n), "pme", "1500000", "450000", "150000", "0", "0", "0", "-", "my self", "3600000", "1500000"}
		if got := c.run(t, d.rest, c.all[i].keys, one); !slices.Equal(got, []string{"1", strconv.Itoa(differentialTime), "0", "1"}) {
			t.Fatalf("take.lua grants request %d, and the rest answers %q\nstate %q\nargs %q", n, got, states[i], args)
		}
		c.done[map[bool]string{true: "nothing there", false: "vacancy"}[len(states[i]) == 0]]++
	}
	d.ask(t, epoch)
	if want := c.read(t); !slices.EqualFunc(after, want, alike) {
		t.Fatalf("left behind:\nby take.lua %q\nby the rest %q\nstates %q\nargs %q\nreply %q", after, want, states, args, reply)
	}
	switch len(refused) {
	case 0:
		c.done["all"]++
	case len(requests):
		c.done["none"]++
	default:
		c.done["some"]++
	}
	for n, i := range requests { // what it refuses is rightly refused: a key with a vacancy is free, and so is one with nothing
		known := n < len(vacant)
		if refused[n] && !granted[i] && (known || timely) && (len(states[i]) == 0 && !known || len(states[i]) == 1 && states[i][0][1] == keys[n] && states[i][0][2] == vacancyOf(before)) {
			t.Fatalf("take.lua refuses request %d for a free key\nstate %q\nreply %q", n, states[i], reply)
		}
	}
}

// leave.lua says again what release_fast.lua does for keys that nobody waits for.
func TestTheLeaveDoesAsTheRest(t *testing.T) {
	onOneServer(t, func(t *testing.T, sv *server) {
		c := newCrew(t, sv, "leave.lua")
		fast := c.all[0].still(t, "<% include release_fast.lua %>")
		drawEach(t, 5, c.done, []string{"all", "some", "none"}, func(t *rapid.T) { c.compareLeaves(t, fast) })
	})
}

func (c *crew) compareLeaves(t *rapid.T, fast *redisconn.Script) {
	var states []differentialState
	var locks, beside, owners, used []string
	args := []string{"3600000"}
	for _, d := range c.all {
		st, owner, token := d.drawHolding(t)
		if rapid.IntRange(0, 3).Draw(t, "usual") > 0 { // the holder leaves, and nobody else is there
			owner, token = me, strconv.Itoa(before)
			st = differentialState{{"SET", d.keys[0], token + " me - ht some body"}}
		}
		states, owners, used = append(states, st), append(owners, owner), append(used, token)
		locks, beside = append(locks, d.keys[0]), append(beside, d.keys[1], d.keys[3], d.keys[4])
		args = append(args, token+" "+owner+" ", token)
	}
	none := []string{"DEL", c.all[0].keys[5]}
	c.make(t, states, none)
	reply := c.run(t, c.script, slices.Concat(locks, beside), args)
	after := c.read(t)
	if len(reply) == 0 || reply[0] != "0" {
		t.Fatalf("reply: got %q, want 0 first", reply)
	}
	refused := refusals(t, reply)
	c.make(t, states, none)
	for i, d := range c.all {
		if refused[i] {
			continue
		}
		if got := c.run(t, fast, d.keys[:len(releaseFastKinds)], []string{owners[i], used[i], "3600000"}); !slices.Equal(got, []string{strconv.Itoa(replyVacant)}) {
			t.Fatalf("leave.lua does release %d, and release_fast.lua answers %q\nstate %q", i, got, states[i])
		}
	}
	if want := c.read(t); !slices.EqualFunc(after, want, alike) {
		t.Fatalf("left behind:\nby leave.lua %q\nby the rest  %q\nstates %q\nargs %q\nreply %q", after, want, states, args, reply)
	}
	c.done[map[int]string{0: "all", len(c.all): "none"}[len(refused)]]++
	if n := len(refused); n > 0 && n < len(c.all) {
		c.done["some"]++
	}
}

// renew_fast.lua says again what renew.lua does for holdings of which nothing changes but the time.
func TestTheFastRenewalDoesAsTheRest(t *testing.T) {
	onOneServer(t, func(t *testing.T, sv *server) {
		c := newCrew(t, sv, "renew_fast.lua")
		rest := c.all[0].still(t, "<% include renew.lua %>")
		kinds := []string{"all", "some", "none", "waiters", "no waiters"}
		drawEach(t, 5, c.done, kinds, func(t *rapid.T) { c.compareRenewals(t, rest) })
	})
}

func (c *crew) compareRenewals(t *rapid.T, rest *redisconn.Script) {
	type renewal struct {
		owner, used, ttl string
		usual            bool
	}
	quiet := rapid.IntRange(0, len(c.all)).Draw(t, "how many don't ask to be notified")
	var states []differentialState
	var locks, queues []string
	var renewals []renewal
	args := []string{strconv.Itoa(quiet)}
	for i, d := range c.all {
		st, owner, used := d.drawHolding(t)
		q := renewal{owner, used, rapid.SampledFrom([]string{"1500000", strconv.Itoa(2 * hours)}).Draw(t, "TTL"), false}
		if rapid.Bool().Draw(t, "usual") {
			flags := rapid.SampledFrom([]string{"-", "t", "wt", "h", "ht", "wht"}).Draw(t, "flags")
			q.owner, q.used, q.usual = me, strconv.Itoa(before), i < quiet || strings.Contains(flags, "h")
			st = append(slices.DeleteFunc(st, func(words []string) bool { return words[1] == d.keys[0] }),
				[]string{"SET", d.keys[0], q.used + " me - " + flags + " some hood", "PX", strconv.Itoa(hours)})
		}
		states, renewals = append(states, st), append(renewals, q)
		locks, queues = append(locks, d.keys[0]), append(queues, d.keys[1])
		args = append(args, q.used+" "+q.owner+" ", q.ttl)
	}
	none := []string{"DEL", c.all[0].keys[5]}
	c.make(t, states, none)
	answers, left := fastAnswers(t, c.run(t, c.script, slices.Concat(locks, queues), args), len(c.all))
	after := c.read(t)
	c.make(t, states, none)
	for i, d := range c.all {
		q := renewals[i]
		if left[i] {
			if q.usual {
				t.Fatalf("renew_fast.lua leaves a usual holding alone, number %d\nstate %q\nargs %q", i+1, states[i], args)
			}
			continue
		}
		one := []string{q.owner, q.ttl, q.used, map[bool]string{false: "1", true: "0"}[i < quiet], "3600000", "0"}
		if got := c.run(t, rest, []string{d.keys[0], d.keys[1], d.keys[3], d.keys[5]}, one); !slices.Equal(got, []string{strconv.Itoa(answers[i])}) {
			t.Fatalf("renewal %d: renew_fast.lua answers %d, renew.lua %q\nstate %q\nargs %q", i+1, answers[i], got, states[i], args)
		}
		c.done[map[bool]string{false: "waiters", true: "no waiters"}[answers[i] == 0]]++
	}
	if want := c.read(t); !slices.EqualFunc(after, want, alike) {
		t.Fatalf("left behind:\nby renew_fast.lua %q\nby renew.lua      %q\nstates %q\nargs %q", after, want, states, args)
	}
	c.done[map[int]string{0: "all", len(c.all): "none"}[len(left)]]++
	if n := len(left); n > 0 && n < len(c.all) {
		c.done["some"]++
	}
}

// fastAnswers reads what renew_fast.lua answers for n holdings: how many wait, and which were left alone.
func fastAnswers(t *rapid.T, reply []string, n int) (answers []int, left map[int]bool) {
	t.Helper()
	answers, left = make([]int, n), make(map[int]bool)
	if slices.Equal(reply, []string{"0"}) {
		return answers, left
	}
	for pair := range slices.Chunk(reply, 2) {
		i, err := strconv.Atoi(pair[0])
		waiters, wrong := strconv.Atoi(pair[len(pair)-1])
		if err != nil || wrong != nil || len(pair) < 2 || i < 1 || i > n {
			t.Fatalf("reply: got %q, want pairs of numbers", reply)
		}
		answers[i-1] = waiters
		if waiters < 0 {
			left[i-1] = true
		}
	}
	return answers, left
}
