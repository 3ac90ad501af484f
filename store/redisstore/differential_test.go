// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// acquire.lua says the common cases twice. On any state, what comes before any
// function definition either leaves everything as it is, and the rest to the rest, or
// does what the rest would have done: the same reply, keys, times to live and messages.
func TestTheShortcutsOfAcquireDoAsTheRest(t *testing.T) {
	onOneServer(t, func(t *testing.T, sv *server) {
		d := newDifferential(t, sv)
		drawEach(t, 40, d.taken, []string{"1", "2"}, func(t *rapid.T) { d.compare(t, d.drawState(t), d.drawRequest(t)) })
	})
}

// compare lets the shortcuts answer, and then the rest.
func (d *differential) compare(t *rapid.T, st differentialState, args []string) {
	reply := d.run(t, st, d.shortcut, len(d.keys), args)
	after := d.read(t)
	if len(reply) == 6 && reply[0] == "1" { // with what the epoch says
		reply = reply[:4]
	}
	if len(reply) == 0 {
		if untouched := d.untouched(t, st); !slices.EqualFunc(after, untouched, alike) {
			t.Fatalf("what the shortcuts leave to the rest:\ngot  %q\nwant %q\nargs %q", after, untouched, args)
		}
		return
	}
	d.taken[reply[0]]++
	if want := d.run(t, st, d.rest, len(d.keys), args); !slices.EqualFunc(reply, want, alike) {
		t.Fatalf("the shortcuts answer %q, the rest %q\nstate %q\nargs %q", reply, want, st, args)
	}
	if want := d.read(t); !slices.EqualFunc(after, want, alike) {
		t.Fatalf("left behind:\nby the shortcuts %q\nby the rest      %q\nstate %q\nargs %q", after, want, st, args)
	}
}

// differentialTime is what the clock says to both, in µs: it must not go on between.
// Its microseconds have fewer digits than there may be.
const differentialTime = 1_800_000_000_000_003

// drawEach draws scenes until each kind was among them. One round is nearly always enough.
func drawEach(t *testing.T, inOneDraw int, drawn map[string]int, kinds []string, scene func(*rapid.T)) {
	t.Helper()
	isNew := func(kind string) bool { return drawn[kind] == 0 }
	for round := 0; round == 0 || round < 8 && slices.ContainsFunc(kinds, isNew); round++ {
		rapid.Check(t, func(t *rapid.T) {
			for range inOneDraw {
				scene(t)
			}
		})
	}
	if slices.ContainsFunc(kinds, isNew) {
		t.Errorf("got draws %v, want each of %v", drawn, kinds)
	}
}

type differential struct {
	sv             *server
	keys           []string // lock, queue, waiters, counter, gone, epoch
	told           string   // the key that messages go to
	shortcut, rest *redisconn.Script
	id             string // of the server's history; empty if it says none
	granting       string // the usual epoch, which grants
	taken          map[string]int
}

func newDifferential(t *testing.T, sv *server) *differential {
	t.Helper()
	source, err := luaFiles.ReadFile("acquire.lua")
	if err != nil {
		t.Fatal(err)
	}
	const include = "<% include epoch.lua %>"
	shortcut, rest, ok := strings.Cut(string(source), include)
	if !ok {
		t.Fatal("acquire.lua has no rest")
	}
	d := &differential{sv: sv, taken: make(map[string]int)}
	d.shortcut, d.rest = d.still(t, shortcut), d.still(t, include+rest)
	for _, kind := range []byte(lockKinds) {
		d.keys = append(d.keys, sv.redisKey("key", kind))
	}
	d.keys = append(d.keys, sv.prefix+":{b00}:e-of-the-test")
	d.told = sv.prefix + ":told"
	if info, err := sv.Try("INFO", "replication"); err == nil { // miniredis has none
		_, id, _ := strings.Cut(info, "master_replid:")
		d.id, _, _ = strings.Cut(id, "\r\n")
	}
	return d
}

// still makes a script for which time stands still. Its messages become items of a
// list, or of a set, so that nobody has to listen.
func (d *differential) still(t *testing.T, source string) *redisconn.Script {
	t.Helper()
	lua, err := expand(source)
	if err != nil {
		t.Fatal(err)
	}
	return redisconn.NewScript(strings.NewReplacer(
		"redis.call('TIME')", fmt.Sprintf("{'%d', '%d'}", differentialTime/1_000_000, differentialTime%1_000_000),
		"'PUBLISH'", "'RPUSH'", "'SPUBLISH'", "'SADD'",
	).Replace(lua))
}

// vacancyOf is the value of a key that is left vacant.
func vacancyOf(token int64) string { return strconv.FormatInt(token, 10) }

// A differentialState is commands that make it.
type differentialState [][]string

const (
	me     = "me"
	hours  = 3_600_000
	nowMS  = differentialTime / 1000
	before = differentialTime - 5_000_000
	ahead  = differentialTime + 7_000_000
)

func (d *differential) drawState(t *rapid.T) (st differentialState) {
	// The usual value comes six times, so that usual values often come together.
	pick := func(name, usual string, others ...string) string {
		return rapid.SampledFrom(append(slices.Repeat([]string{usual}, 6), others...)).Draw(t, name)
	}
	set := func(key, value string) {
		switch value {
		case "":
		case "a list":
			st = append(st, []string{"RPUSH", key, "foreign"})
		default:
			st = append(st, []string{"SET", key, value})
		}
	}
	told := rapid.SampledFrom([]string{"p" + d.told, "s" + d.told, "u" + d.told, "-"}).Draw(t, "the holder's channel")
	flags := rapid.SampledFrom([]string{"-", "h", "t", "ht", "hwt", "wt"}).Draw(t, "the holder's flags")
	record := func(token int64, owner string) string {
		return strconv.FormatInt(token, 10) + " " + owner + " " + told + " " + flags + " some body"
	}
	held := pick("lock", record(before, "holder"), "", "", "", "", "", "", record(before, me), record(ahead, "holder"), record(before, "-"),
		vacancyOf(before), vacancyOf(before), vacancyOf(ahead), vacancyOf(99999999999999999), "=", "1x",
		"99999999999999999 holder p - x", "9900000000000000 holder p - x", "17 holder p -", "nothing", "a list", "=r 5 5 0 0 0 0")
	set(d.keys[0], held)
	if held != "" && held != "a list" && rapid.Bool().Draw(t, "with a TTL") {
		st = append(st, []string{"PEXPIRE", d.keys[0], strconv.Itoa(hours)})
	}
	set(d.keys[3], pick("counter", strconv.Itoa(before), "", strconv.Itoa(ahead), "9900000000000000", "12345678901234567", "x", "a list"))

	switch pick("queue", "others", "none", "none", "none", "none", "a string") {
	case "others":
		for i := range rapid.IntRange(0, 3).Draw(t, "others") {
			st = append(st, []string{"ZADD", d.keys[1], strconv.Itoa(before + i), "other" + strconv.Itoa(i)})
			st = append(st, []string{"HSET", d.keys[2], "other" + strconv.Itoa(i), strconv.Itoa(nowMS-1) + " p 1 - x"})
		}
		if place := pick("my place", "", strconv.Itoa(before-9), strconv.Itoa(ahead), "1.5", "1e17"); place != "" {
			st = append(st, []string{"ZADD", d.keys[1], place, me}, []string{"HSET", d.keys[2], me, "1 - 1 - x"})
		}
	case "a string":
		set(d.keys[1], "foreign")
	}
	if held != "" && !isVacancy(held) && pick("waiters", "sound", "foreign") == "foreign" {
		st = append(st, []string{"DEL", d.keys[2]}, []string{"SET", d.keys[2], "foreign"})
	}
	switch pick("gone", "nobody", "me", "me long ago", "another", "a string") {
	case "me":
		st = append(st, []string{"ZADD", d.keys[4], strconv.Itoa(nowMS + 1000), me})
	case "me long ago":
		st = append(st, []string{"ZADD", d.keys[4], strconv.Itoa(nowMS - 1000), me})
	case "another":
		st = append(st, []string{"ZADD", d.keys[4], strconv.Itoa(nowMS + 1000), "another"})
	case "a string":
		set(d.keys[4], "foreign")
	}
	noted, _ := strconv.Atoi(pick("noted", strconv.Itoa(nowMS-1), strconv.Itoa(nowMS-999), strconv.Itoa(nowMS-1000), strconv.Itoa(nowMS), strconv.Itoa(nowMS+1)))
	epoch := func(id string, ready, longest, turn int) string {
		return fmt.Sprint(id, " ", ready, " ", longest, " 0 ", turn, " ", noted)
	}
	d.granting = fmt.Sprint(d.id, " ", nowMS-1, " 2000000 0 ", nowMS+hours, " ", nowMS-1)
	set(d.keys[5], pick("epoch", d.granting, "", epoch(d.id, nowMS-1, 2_000_000, nowMS+hours),
		epoch(d.id, nowMS, 2_000_000, nowMS+hours), epoch(d.id, nowMS+1, 2_000_000, nowMS+hours), epoch("abc", nowMS-1, 2_000_000, nowMS+hours),
		epoch(d.id, nowMS-1, 1_499_999, nowMS+hours), epoch(d.id, nowMS-1, 1_600_000, nowMS+hours), epoch(d.id, nowMS-1, 1_600_000, nowMS+hours), epoch(d.id, nowMS-1, 1_600_000, nowMS+hours),
		epoch(d.id, nowMS-1, 2_000_000, nowMS),
		epoch(d.id, nowMS-1, 2_000_000, nowMS+25*hours), "damaged", "a list"))
	return st
}

// drawRequest returns the arguments that acquire.lua describes.
func (d *differential) drawRequest(t *rapid.T) []string {
	pick := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	least := "0"
	if d.id != "" {
		least = pick("least grace", "1500000", "1800000", "0")
	}
	return []string{
		me, "p" + d.told, pick("TTL", "1500000", "1700000"), "450000", "150000", pick("wait", "1", "1", "0"), pick("limit", "16384", "1", "3", "0"),
		pick("ticket", "0", "0", strconv.Itoa(before-1)), pick("flags", "-", "h", "w", "hw"), "my self",
		pick("counter TTL", "3600000", "60000000"), least,
	}
}

// ask sends commands together and returns the words of each answer; none for nil.
func (d *differential) ask(t *rapid.T, commands ...[]string) [][]string {
	t.Helper()
	batch := make([]rueidis.Completed, len(commands))
	for i, words := range commands {
		batch[i] = d.sv.Raw.B().Arbitrary(words...).Build()
	}
	answers := make([][]string, len(commands))
	for i, result := range d.sv.Raw.DoMulti(t.Context(), batch...) {
		switch said, err := result.ToAny(); {
		case rueidis.IsRedisNil(err):
		case err != nil:
			t.Fatalf("%q: %v", commands[i], err)
		default:
			answers[i] = strings.Fields(strings.Trim(fmt.Sprint(said), "[]"))
		}
	}
	return answers
}

// run makes the state, with nothing else left, and returns the script's reply.
func (d *differential) run(t *rapid.T, st differentialState, sc *redisconn.Script, keys int, args []string) []string {
	t.Helper()
	commands := append([][]string{append([]string{"DEL", d.told}, d.keys...)}, st...)
	script := slices.Concat([]string{"EVAL", sc.Source, strconv.Itoa(keys)}, d.keys[:keys], args)
	answers := d.ask(t, append(commands, script)...)
	return answers[len(answers)-1]
}

// untouched is what a state looks like.
func (d *differential) untouched(t *rapid.T, st differentialState) []string {
	t.Helper()
	d.ask(t, append([][]string{append([]string{"DEL", d.told}, d.keys...)}, st...)...)
	return d.read(t)
}

// read returns the kind of each key and for how long it lives, and then what they hold.
func (d *differential) read(t *rapid.T) (all []string) {
	t.Helper()
	keys := append(slices.Clone(d.keys), d.told)
	var looks [][]string
	for _, key := range keys {
		looks = append(looks, []string{"TYPE", key}, []string{"PTTL", key})
	}
	var values [][]string
	for i, answer := range d.ask(t, looks...) {
		all = append(all, answer...)
		key := keys[i/2]
		switch answer[0] {
		case "string":
			values = append(values, []string{"GET", key})
		case "list":
			values = append(values, []string{"LRANGE", key, "0", "-1"})
		case "zset":
			values = append(values, []string{"ZRANGE", key, "0", "-1", "WITHSCORES"})
		case "hash":
			values = append(values, []string{"HGETALL", key})
		}
	}
	for i, answer := range d.ask(t, values...) {
		all = append(append(all, values[i][1]), answer...)
	}
	return all
}

// alike says whether two words are the same, or times that differ by no more than a
// busy machine.
func alike(a, b string) bool {
	n, err := strconv.ParseInt(a, 10, 64)
	m, err2 := strconv.ParseInt(b, 10, 64)
	if err != nil || err2 != nil || max(n, m) < 10_000 || n > 100_000_000_000 {
		return a == b
	}
	return max(n-m, m-n) < 60_000
}
