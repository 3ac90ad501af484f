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

// acquire_shares.lua and release_shares.lua say the common cases twice. On any state, what
// comes before any function definition either leaves everything as it is, and the rest to the
// rest, or does what the rest would have done: the same reply, keys and times to live.
func TestTheShortcutsOfSharesDoAsTheRest(t *testing.T) {
	states := 120
	if testing.Short() {
		states = 600 // rapid draws a fifth then
	}
	for file, draw := range map[string]func(*sharesDifferential, *rapid.T) []string{
		"acquire_shares.lua": (*sharesDifferential).drawShare,
		"release_shares.lua": (*sharesDifferential).drawLeave,
	} {
		t.Run(file, func(t *testing.T) {
			onOneServer(t, func(t *testing.T, sv *server) {
				d := newSharesDifferential(t, sv, file)
				usual := []string{"=r alone", "=r beside others", "=p alone", "=p beside others"}
				if file == "release_shares.lua" {
					usual = append(usual, "=p handed on alone", "=p handed on beside others")
				}
				drawEach(t, states, d.taken, usual, func(t *rapid.T) {
					st := d.drawShared(t)
					d.compare(t, st, draw(d, t))
				})
			})
		})
	}
}

type sharesDifferential struct {
	*differential
	members int // of the state drawn last
	kind    string
	waiters int
	tidy    bool
	odd     string
}

// newSharesDifferential parts a script in its shortcuts and its rest.
func newSharesDifferential(t *testing.T, sv *server, file string) *sharesDifferential {
	t.Helper()
	d := &sharesDifferential{differential: newDifferential(t, sv)}
	for _, kind := range []byte(shareKinds + "c") {
		d.keys = append(d.keys, sv.redisKey("key", kind))
	}
	source, err := luaFiles.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const include = "<% include epoch.lua %>"
	shortcut, rest, ok := strings.Cut(string(source), include)
	if !ok {
		t.Fatal(file + " has no rest")
	}
	d.shortcut, d.rest = d.timeless(t, shortcut), d.timeless(t, include+rest)
	return d
}

// timeless is still, and a time to live that ends at a point of that time has its length instead,
// because the server's clock shows another one.
func (d *sharesDifferential) timeless(t *testing.T, source string) *redisconn.Script {
	t.Helper()
	return redisconn.NewScript(strings.NewReplacer(
		"'PXAT', text(latest)", "'PX', text(latest - now_ms)",
		"'PXAT', latest)", fmt.Sprintf("'PX', string.format('%%.0f', latest - %d))", nowMS),
		"'PXAT', string.format('%.0f', latest)", fmt.Sprintf("'PX', string.format('%%.0f', latest - %d)", nowMS),
	).Replace(d.still(t, source).Source))
}

// compare lets the shortcuts answer, and then the rest.
func (d *sharesDifferential) compare(t *rapid.T, st differentialState, args []string) {
	reply := d.run(t, st, d.shortcut, len(d.keys), args)
	after := d.read(t)
	if len(reply) == 0 {
		if untouched := d.untouched(t, st); !slices.EqualFunc(after, untouched, alike) {
			t.Fatalf("what the shortcuts leave to the rest:\ngot  %q\nwant %q\nargs %q", after, untouched, args)
		}
		return
	}
	what := d.kind
	if d.waiters > 0 {
		what += " handed on"
	}
	if d.members > 1 || d.members == 1 && reply[0] == "9" {
		d.taken[what+" beside others"]++
	} else {
		d.taken[what+" alone"]++
	}
	if d.waiters == 0 && args[3] == clean { // it does what the rest does without a guard
		args = append(slices.Clone(args[:len(args)-1]), "0")
	}
	if want := d.run(t, st, d.rest, len(d.keys), args); !slices.Equal(reply, want) {
		t.Fatalf("the shortcuts answer %q, the rest %q\nstate %q\nargs %q", reply, want, st, args)
	}
	if want := d.read(t); !slices.EqualFunc(after, want, alike) {
		t.Fatalf("left behind:\nby the shortcuts %q\nby the rest      %q\nstate %q\nargs %q", after, want, st, args)
	}
}

// clean is what release_shares.lua gets about a release that is clean.
const clean = "2"

// usually returns the usual value most of the time.
func usually(t *rapid.T, name, usual string, others ...string) string {
	return rapid.SampledFrom(append(slices.Repeat([]string{usual}, 12), others...)).Draw(t, name)
}

// usually is always in a tidy state, except for one thing. Without these few states would be for a handoff, for
// which a dozen things have to be as usual.
func (d *sharesDifferential) usually(t *rapid.T, name, usual string, others ...string) string {
	switch {
	case !d.tidy:
		return usually(t, name, usual, others...)
	case name == d.odd:
		return rapid.SampledFrom(append(others, usual)).Draw(t, name)
	default:
		return usual
	}
}

// odd is what may be unusual in a tidy state.
var odd = []string{
	"nothing", "nothing", "nothing", "nothing", "counter", "counter of a group", "queue", "gone", "ceiling", "epoch", "epoch", "waiter", "waiter flags", "first", "first",
	"waiter alive", "waiter ttl", "entry", "member", "first", "ends", "details", "kept", "kept", "group", "owner", "keep", "rest", "requeue",
}

// drawShared returns a state in which the key is usually free or a group has it.
func (d *sharesDifferential) drawShared(t *rapid.T) (st differentialState) {
	d.members, d.waiters, d.kind = 0, 0, rapid.SampledFrom([]string{"=r", "=p"}).Draw(t, "kind")
	d.tidy, d.odd = rapid.IntRange(0, 3).Draw(t, "tidy") > 0, rapid.SampledFrom(odd).Draw(t, "odd")
	set := func(key, value string) {
		switch value {
		case "":
		case "a list":
			st = append(st, []string{"RPUSH", key, "foreign"})
		default:
			st = append(st, []string{"SET", key, value, "PX", strconv.Itoa(hours)})
		}
	}
	counter := d.usually(t, "counter", "", strconv.Itoa(before), strconv.Itoa(ahead), "9900000000000000", "12345678901234567", "x", "a list")
	if rapid.IntRange(0, 2).Draw(t, "shared") > 0 {
		var lock string
		st, lock = d.drawGroup(t)
		set(d.keys[0], lock)
		counter = d.usually(t, "counter of a group", strconv.Itoa(before+500), counter, strconv.Itoa(before+501), strconv.Itoa(ahead), strconv.Itoa(ahead))
	} else {
		set(d.keys[0], d.usually(t, "lock", rapid.SampledFrom([]string{"", vacancyOf(before)}).Draw(t, "free"),
			vacancyOf(ahead), vacancyOf(99999999999999999), strconv.Itoa(before)+" holder - - x", strconv.Itoa(before)+" me - - x", "=", "nothing", "a list"))
		if d.usually(t, "left behind", "nothing", "a member") == "a member" {
			st = append(st, []string{"ZADD", d.keys[6], strconv.Itoa(nowMS + 9), "old"}, []string{"HSET", d.keys[7], "old", "- - 1 5 9 x"})
		}
	}
	set(d.keys[3], counter)
	queue := d.usually(t, "queue", "none", "another", "me", "foreign")
	if d.members > 0 && rapid.IntRange(0, 1).Draw(t, "somebody waits") == 1 {
		queue = "some"
	}
	switch queue {
	case "some":
		st = append(st, d.drawWaiters(t)...)
	case "another":
		st = append(st, []string{"ZADD", d.keys[1], strconv.Itoa(before), "other"}, []string{"HSET", d.keys[2], "other", strconv.Itoa(nowMS+1000) + " - 450000 - x"})
	case "me":
		st = append(st, []string{"ZADD", d.keys[1], strconv.Itoa(before), me}, []string{"HSET", d.keys[2], me, strconv.Itoa(nowMS+1000) + " - 450000 - x"})
	case "foreign":
		set(d.keys[1], "foreign")
	}
	switch d.usually(t, "gone", "nobody", me, "another", "foreign") {
	case me:
		st = append(st, []string{"ZADD", d.keys[4], strconv.Itoa(nowMS + 1000), me})
	case "another":
		st = append(st, []string{"ZADD", d.keys[4], strconv.Itoa(nowMS + 1000), "another"})
	case "foreign":
		set(d.keys[4], "foreign")
	}
	set(d.keys[8], d.usually(t, "ceiling", "", "1", "3", "100", "x", "a list"))
	epoch := func(id string, ready, longest, turn, noted int) string {
		return fmt.Sprint(id, " ", ready, " ", longest, " 0 ", turn, " ", noted)
	}
	set(d.keys[5], d.usually(t, "epoch", epoch(d.id, nowMS-1, 2_000_000, nowMS+hours, nowMS-1), "",
		epoch(d.id, nowMS, 2_000_000, nowMS+hours, nowMS-1000), epoch(d.id, nowMS+1, 2_000_000, nowMS+hours, nowMS),
		epoch("abc", nowMS-1, 2_000_000, nowMS+hours, nowMS), epoch(d.id, nowMS-1, 1_499_999, nowMS+hours, nowMS),
		epoch(d.id, nowMS-1, 2_000_000, nowMS, nowMS), epoch(d.id, nowMS-1, 2_000_000, nowMS+hours, nowMS+1),
		epoch(d.id, nowMS-1, 2_000_000, nowMS+hours, nowMS+1), epoch(d.id, nowMS-1, 2_000_000, nowMS+hours, nowMS+1),
		epoch(d.id, nowMS-7_000, 2_000_000, nowMS+hours, nowMS), epoch(d.id, nowMS-7_000, 2_000_000, nowMS+hours, nowMS),
		"damaged", "a list"))
	return st
}

// drawWaiters returns who waits for a group: usually for permits, alive and reachable.
func (d *sharesDifferential) drawWaiters(t *rapid.T) (st differentialState) {
	d.waiters = rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "waiters")
	for i := range d.waiters {
		owner := d.usually(t, "waiter", "w"+strconv.Itoa(i), "w "+strconv.Itoa(i), "w "+strconv.Itoa(i), "w "+strconv.Itoa(i), me)
		flags := fmt.Sprint(rapid.SampledFrom([]string{"", "", "h", "hw"}).Draw(t, "waiter hears"), "p", rapid.IntRange(1, 2).Draw(t, "waiter weight"),
			"+", rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "waiter extra"), "/", rapid.SampledFrom([]int{7, 7, 7, 5, 5, 3, 2, 1}).Draw(t, "waiter limit"),
			rapid.SampledFrom([]string{"", "", "g"}).Draw(t, "waiter's grace"))
		flags = d.usually(t, "waiter flags", flags, "-", "r", "p1+0/1000001")
		channel := rapid.SampledFrom([]string{"-", "u" + d.told, "u" + d.told, "p" + d.told}).Draw(t, "waiter channel")
		deadline := d.usually(t, "waiter alive", strconv.Itoa(nowMS+1000), strconv.Itoa(nowMS), strconv.Itoa(nowMS-1))
		ttl := d.usually(t, "waiter ttl", "450000", "9000000", "0", "1234567890123456", "1234567890123456", "1234567890123456")
		st = append(st, []string{"ZADD", d.keys[1], strconv.Itoa(before + 100 + i), owner})
		if entry := d.usually(t, "entry", deadline+" "+channel+" "+ttl+" "+flags+" who waits", "", "damaged"); entry != "" {
			st = append(st, []string{"HSET", d.keys[2], owner, entry})
		}
	}
	return st
}

// drawGroup returns the members of a group, and its lock.
func (d *sharesDifferential) drawGroup(t *rapid.T) (st differentialState, lock string) {
	d.members = rapid.IntRange(1, 3).Draw(t, "members")
	live := strconv.Itoa(hours)
	used, limits := 0, make(map[int]int)
	for i := range d.members {
		owner := d.usually(t, "member", "m"+strconv.Itoa(i), "- 17")
		if i == 0 {
			owner = d.usually(t, "first", me, "m0", "m0", "m0", "m0", "m0", "m0", "m0", "m0", "m0", "m0", "m0")
		}
		ends, _ := strconv.Atoi(d.usually(t, "ends", strconv.Itoa(nowMS+rapid.IntRange(1, 9).Draw(t, "ms")*400_000), strconv.Itoa(nowMS), strconv.Itoa(nowMS-1)))
		weight, most, token := 0, 0, before+i
		if d.kind == "=p" {
			weight, most = rapid.IntRange(1, 2).Draw(t, "weight"), rapid.SampledFrom([]int{5, 5, 7, 2}).Draw(t, "limit")
			limits[most]++
		}
		used += weight
		st = append(st, []string{"ZADD", d.keys[6], strconv.Itoa(ends), owner})
		if said := d.usually(t, "details", "sound", "none", "damaged"); said == "sound" {
			st = append(st, []string{"HSET", d.keys[7], owner, fmt.Sprint("- h ", weight, " ", most, " ", token, " some body")})
		} else if said == "damaged" {
			st = append(st, []string{"HSET", d.keys[7], owner, "damaged"})
		}
	}
	kept := 0
	if d.usually(t, "kept", "no", "yes") == "yes" {
		kept = nowMS + 500
	}
	shown := before + 500
	if d.kind == "=r" {
		shown = before
	}
	limit, least, larger := counted(limits)
	for i := 0; i < len(larger); i += 2 {
		st = append(st, []string{"ZADD", d.keys[9], larger[i+1], larger[i]})
	}
	st = append(st, []string{"PEXPIRE", d.keys[6], live}, []string{"PEXPIRE", d.keys[7], live}, []string{"PEXPIRE", d.keys[9], live})
	rest := fmt.Sprint(" ", shown, " ", kept, " ", used, " ", limit, " ", least, " ", len(larger)/2, " ", usually(t, "writer", "-", "w"))
	return st, d.usually(t, "group", fmt.Sprint(d.kind, " ", before+500, rest), fmt.Sprint(d.kind, " ", ahead, rest),
		d.kind+" 9900000000000000 5 0 0 0 0 0 -", d.kind+" 5")
}

// drawShare returns the arguments that acquire_shares.lua describes.
func (d *sharesDifferential) drawShare(t *rapid.T) []string {
	flags := d.usually(t, "flags", "r", "-", "rh", "rhw", "h")
	if mode := d.usually(t, "mode", d.kind, "=r", "=p"); mode == "=p" {
		flags = fmt.Sprint("p", rapid.IntRange(1, 4).Draw(t, "weight"), "+", rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "extra"),
			"/", rapid.SampledFrom([]int{5, 5, 3, 7, 1_000_000}).Draw(t, "limit"), d.usually(t, "hears", "", "hw"))
	}
	return []string{
		me, "p" + d.told, rapid.SampledFrom([]string{"1500000", "1700000"}).Draw(t, "TTL"), "450000", "150000",
		rapid.SampledFrom([]string{"0", "1"}).Draw(t, "wait"), "16384", d.usually(t, "ticket", "0", strconv.Itoa(before-1)), flags, "my self",
		rapid.SampledFrom([]string{"3600000", "60000000"}).Draw(t, "counter TTL"), d.drawLeast(t),
	}
}

// drawLeave returns the arguments that release_shares.lua describes.
func (d *sharesDifferential) drawLeave(t *rapid.T) []string {
	args := []string{
		d.usually(t, "owner", me, "m0", "m1", "stranger"), strconv.Itoa(before), d.usually(t, "keep", "0", "5000"), rapid.SampledFrom([]string{"0", "0", clean, clean, clean, "1"}).Draw(t, "uncertain"),
		d.usually(t, "rest", "-", "r", "1"),
	}
	if d.usually(t, "requeue", "no", "yes") == "yes" {
		args = append(args, d.drawShare(t)[:10]...)
	}
	return append(args, rapid.SampledFrom([]string{"3600000", "60000000"}).Draw(t, "counter TTL"), d.drawLeast(t))
}

func (d *sharesDifferential) drawLeast(t *rapid.T) string {
	if d.id == "" {
		return "0"
	}
	return rapid.SampledFrom([]string{"1500000", "1800000", "0"}).Draw(t, "least grace")
}
