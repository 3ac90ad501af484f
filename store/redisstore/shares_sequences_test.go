// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A whole script and its rest alone go through the same requests, one after another, and each on keys
// of its own. They answer and leave behind the same at each step. Members and waiters die, the clock
// is set back, a failover begins a grace, and the ceiling changes. No token is given twice, and no
// more permits are out than there are. A holder of all of the key does not become a reader here, for
// the server then counts by its own clock.
func TestSequencesOfSharesDoAsTheRest(t *testing.T) {
	onOneServer(t, func(t *testing.T, sv *server) {
		sides := [2]*sharesSide{newSharesSide(t, sv, "key", true), newSharesSide(t, sv, "yek", false)}
		rapid.Check(t, func(t *rapid.T) {
			for _, side := range sides {
				side.reset(t)
			}
			walk := sharesWalk{sides: sides, owners: make(map[string]string), sound: true}
			for range 8 {
				walk.step(t)
			}
		})
	})
}

// A sharesSide is the scripts on the keys of one side.
type sharesSide struct {
	*differential
	sources map[string]string
}

func newSharesSide(t *testing.T, sv *server, key string, whole bool) *sharesSide {
	t.Helper()
	s := &sharesSide{differential: newDifferential(t, sv), sources: make(map[string]string)}
	s.keys = nil
	for _, kind := range []byte(lockKinds) {
		s.keys = append(s.keys, sv.redisKey(key, kind))
	}
	s.keys = append(s.keys, sv.prefix+":{b00}:e-of-"+key)
	for _, kind := range []byte(shareKinds + "c") {
		s.keys = append(s.keys, sv.redisKey(key, kind))
	}
	s.told = sv.prefix + ":told-" + key
	for _, file := range []string{"acquire_shares.lua", "release_shares.lua"} {
		source, err := luaFiles.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		if !whole {
			const include = "<% include epoch.lua %>"
			text = include + strings.SplitN(text, include, 2)[1]
		}
		if s.sources[file], err = expand(text); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *sharesSide) reset(t *rapid.T) {
	s.ask(t, append([]string{"DEL", s.told}, s.keys...), []string{"SET", s.keys[5], s.epochAt(s.id, nowMS)})
}

func (s *sharesSide) epochAt(id string, noted int) string {
	return fmt.Sprint(id, " ", nowMS-1, " 2000000 0 ", nowMS+24*hours-1, " ", noted)
}

// at runs a script at that time in ms.
func (s *sharesSide) at(t *rapid.T, file string, ms int, args []string) []string {
	t.Helper()
	source := strings.NewReplacer(
		"redis.call('TIME')", fmt.Sprintf("{'%d', '%d'}", ms/1000, ms%1000*1000+456),
		"'PUBLISH'", "'RPUSH'", "'SPUBLISH'", "'SADD'",
		"'PXAT', text(latest)", "'PX', text(latest - now_ms)",
		"'PXAT', latest)", fmt.Sprintf("'PX', string.format('%%.0f', latest - %d))", ms),
		"'PXAT', string.format('%.0f', latest)", fmt.Sprintf("'PX', string.format('%%.0f', latest - %d)", ms),
	).Replace(s.sources[file])
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "$told", s.told)
	}
	script := redisconn.NewScript(source).Source
	return s.ask(t, slices.Concat([]string{"EVAL", script, strconv.Itoa(len(s.keys))}, s.keys, args))[0]
}

// seen is what read returns, with the names of the first side.
func (s *sharesSide) seen(t *rapid.T, first *sharesSide) string {
	all := strings.Join(s.read(t), "\n")
	for i, key := range s.keys {
		all = strings.ReplaceAll(all, key, first.keys[i])
	}
	return strings.ReplaceAll(all, s.told, first.told)
}

// A sharesWalk is a run of requests.
type sharesWalk struct {
	sides   [2]*sharesSide
	now     int               // how many steps of time have passed
	fresh   int               // how many owners there were
	owners  map[string]string // by their tokens
	newest  int
	ceiling bool // there are as many permits as this says, or were when a member of the group came
	sound   bool // there was no failover, and the clock was not set back
}

func (w *sharesWalk) step(t *rapid.T) {
	w.now++
	switch rapid.IntRange(0, 39).Draw(t, "event") {
	case 0:
		w.now, w.sound = max(0, w.now-rapid.IntRange(1, 4).Draw(t, "set back")), false
	case 1:
		w.now += rapid.IntRange(1, 12).Draw(t, "later")
	case 2:
		w.sound = false
		for _, s := range w.sides {
			s.ask(t, []string{"SET", s.keys[5], s.epochAt("abc", nowMS)})
		}
	case 3:
		words := rapid.SampledFrom([]string{"DEL", "DEL", "SET 1", "SET 3", "SET 9"}).Draw(t, "ceiling")
		verb, n, _ := strings.Cut(words, " ")
		for _, s := range w.sides {
			s.ask(t, slices.DeleteFunc([]string{verb, s.keys[8], n}, func(word string) bool { return word == "" }))
		}
	}
	file, args := "acquire_shares.lua", w.request(t)
	if rapid.IntRange(0, 9).Draw(t, "release") < 5 {
		file, args = "release_shares.lua", w.leave(t)
	}
	least := "0"
	if w.sides[0].id != "" {
		least = "1500000"
	}
	args = append(args, "3600000", least)
	ms := nowMS + w.now*100_000
	reply, want := w.sides[0].at(t, file, ms, slices.Clone(args)), w.sides[1].at(t, file, ms, slices.Clone(args))
	if !slices.EqualFunc(reply, want, alike) {
		t.Fatalf("%s %q at %d: the whole script answers %q, the rest %q", file, args, w.now, reply, want)
	}
	got, rest := w.sides[0].seen(t, w.sides[0]), w.sides[1].seen(t, w.sides[0])
	if !slices.EqualFunc(strings.Split(got, "\n"), strings.Split(rest, "\n"), alike) {
		t.Fatalf("%s %q at %d leaves behind:\nthe whole script %q\nthe rest         %q", file, args, w.now, got, rest)
	}
	w.check(t)
}

// owner returns one of the last few owners.
func (w *sharesWalk) owner(t *rapid.T) string {
	return "o" + strconv.Itoa(max(0, w.fresh-rapid.IntRange(0, 7).Draw(t, "owner")))
}

// request returns the arguments of acquire_shares.lua, without the last two.
func (w *sharesWalk) request(t *rapid.T) []string {
	owner := w.owner(t)
	if rapid.IntRange(0, 3).Draw(t, "new") > 0 {
		w.fresh++
		owner = "o" + strconv.Itoa(w.fresh)
	}
	flags := fmt.Sprint(rapid.SampledFrom([]string{"", "h", "hw"}).Draw(t, "hears"), "p", rapid.IntRange(1, 3).Draw(t, "weight"),
		"+", rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "extra"), "/", rapid.SampledFrom([]int{3, 3, 3, 5, 4}).Draw(t, "limit"))
	flags = usually(t, "flags", flags, "r", "rh", "-")
	return []string{
		owner, rapid.SampledFrom([]string{"u$told", "u$told", "u$told", "-", "p$told"}).Draw(t, "channel"), "1500000", "1450000",
		rapid.SampledFrom([]string{"150000", "900000", "2000000"}).Draw(t, "liveness"), usually(t, "wait", "1", "0"), "16384", "0", flags, "my self",
	}
}

// leave returns the arguments of release_shares.lua, without the last two.
func (w *sharesWalk) leave(t *rapid.T) []string {
	uncertain := rapid.SampledFrom([]string{"0", "0", clean, clean, "1"}).Draw(t, "uncertain")
	if uncertain == clean && !w.sound {
		uncertain = "0" // a clean release leaves less behind in a grace
	}
	args := []string{w.owner(t), "0", usually(t, "keep", "0", "350000"), uncertain, usually(t, "rest", "-", "1")}
	if args[4] == "-" && usually(t, "again", "no", "yes") == "yes" {
		args = append(args, w.request(t)...)
	}
	return args
}

// check looks at the members of the first side.
func (w *sharesWalk) check(t *rapid.T) {
	s := w.sides[0]
	looks := s.ask(t, []string{"GET", s.keys[0]}, []string{"ZRANGE", s.keys[6], "0", "-1"})
	group, members := looks[0], looks[1]
	if len(group) != 9 || !strings.HasPrefix(group[0], "=") {
		w.ceiling = false
		return
	}
	owners := s.ask(t, []string{"ZRANGEBYSCORE", s.keys[6], "-inf", "+inf"})[0]
	names := strings.Split(strings.ReplaceAll(strings.Join(owners, " "), "- ", "-\x00"), " ")
	ceiling := len(s.ask(t, []string{"GET", s.keys[8]})[0]) > 0 || w.ceiling
	w.ceiling = ceiling && len(names) > 0
	used, newest, limits := 0, w.newest, make(map[int]int)
	for _, name := range names {
		if strings.HasPrefix(name, "-") {
			return // parts that are held back have names of several words
		}
		var channel, flags string
		var weight, most, token int
		entry := strings.Join(s.ask(t, []string{"HGET", s.keys[7], name})[0], " ")
		if _, err := fmt.Sscan(entry, &channel, &flags, &weight, &most, &token); err != nil {
			t.Fatalf("member %q of %q: %q", name, members, entry)
		}
		number := strconv.Itoa(token)
		if was, ok := w.owners[number]; ok && was != name {
			t.Fatalf("token %s: given to %s and to %s", number, was, name)
		} else if !ok && token <= w.newest {
			t.Fatalf("token %s of %s after %d", number, name, w.newest)
		}
		w.owners[number], newest = name, max(newest, token)
		used += weight
		limits[most]++
	}
	w.newest = newest
	if group[0] == "=r" {
		return
	}
	limit, least, larger := counted(limits)
	want := []string{strconv.Itoa(used), strconv.Itoa(limit), strconv.Itoa(least), strconv.Itoa(len(larger) / 2), "-"}
	got := s.ask(t, []string{"ZRANGE", s.keys[9], "0", "-1", "WITHSCORES"})[0]
	for i, number := range got {
		f, err := strconv.ParseFloat(strings.Trim(number, "[]"), 64) // RESP3 has pairs
		if err != nil {
			t.Fatal(err)
		}
		got[i] = fmt.Sprintf("%.0f", f)
	}
	if !slices.Equal(group[4:], want) || !slices.Equal(got, larger) || used > limit && !ceiling {
		t.Fatalf("group %q, and larger limits %q: its members have %q and %q", group, got, want, larger)
	}
}

// counted returns the smallest limit, how many count on that, and what shares.lua keeps of the others.
func counted(limits map[int]int) (smallest, least int, larger []string) {
	for i, limit := range slices.Sorted(maps.Keys(limits)) {
		if i == 0 {
			smallest, least = limit, limits[limit]
			continue
		}
		larger = append(larger, strconv.Itoa(limit), strconv.Itoa(limit<<32+limits[limit]))
	}
	return smallest, least, larger
}
