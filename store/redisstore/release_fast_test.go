// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// release_fast.lua says again what release.lua does in the common cases. On any state it
// either leaves everything as it is, and says so, or does what release.lua would have
// done for a server that has forgotten nothing: the same keys, times to live and
// messages, and a reply that says the same and whether nobody is left to wait.
func TestTheFastReleaseDoesAsTheRest(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		d := newDifferential(t, sv)
		// A channel's name says how many hear it.
		heard := strings.NewReplacer(
			"redis.pcall('PUBSUB', mode == 's' and 'SHARDNUMSUB' or 'NUMSUB', name)", "({0, string.find(name, 'deaf', 1, true) and 0 or 2})",
			"redis.pcall('PUBSUB', mode == 's' and 'SHARDNUMSUB' or 'NUMSUB', string.sub(channel, 2))", "({0, string.find(channel, 'deaf', 1, true) and 0 or 2})",
		)
		script := func(file string) *redisconn.Script {
			return redisconn.NewScript(heard.Replace(d.still(t, "<% include "+file+" %>").Source))
		}
		fast, release := script("release_fast.lua"), script("release.lua")
		holds := make(map[string]int)
		check := func(t *rapid.T) {
			for range 20 {
				st, owner, used := d.drawHolding(t)
				reply := d.run(t, st, fast, len(releaseFastKinds), []string{owner, used, "3600000"})
				after := d.read(t)
				if reply[0] == "0" {
					if untouched := d.untouched(t, st); !slices.EqualFunc(after, untouched, alike) {
						t.Fatalf("what is not common:\ngot  %q\nwant %q\n%s %s", after, untouched, owner, used)
					}
					continue
				}
				want := d.run(t, st, release, len(d.keys), []string{owner, used, "0", "0", "3600000", "0"})
				// It also says whether it was the only waiter who has the key now.
				who := "nobody"
				switch {
				case reply[0] == strconv.Itoa(replyVacant):
					who = "nobody, and the key is vacant"
					want[0] = reply[0]
				case after[0] == "none": // the lock
				case after[2] == "none": // the queue
					who = "the only waiter"
					want[0] = strconv.Itoa(replyHandedToTheLast)
				default:
					who = "the first waiter"
				}
				holds[who]++
				if !slices.Equal(reply, want) {
					t.Fatalf("release_fast.lua answers %q, release.lua %q\nstate %q\n%s %s", reply, want, st, owner, used)
				}
				if want := d.read(t); !slices.EqualFunc(after, want, alike) {
					t.Fatalf("left behind:\nby release_fast.lua %q\nby release.lua      %q\nstate %q\n%s %s", after, want, st, owner, used)
				}
			}
		}
		for range 5 { // the rarest is drawn once in a hundred times
			if rapid.Check(t, check); len(holds) == 4 {
				break
			}
		}
		for _, who := range []string{"nobody", "nobody, and the key is vacant", "the only waiter", "the first waiter"} {
			if holds[who] == 0 {
				t.Errorf("release_fast.lua had no state after which %s holds the key", who)
			}
		}
	})
}

// drawHolding returns a state in which the key is usually held, the owner that gives it back,
// and the last token used.
func (d *differential) drawHolding(t *rapid.T) (st differentialState, owner, used string) {
	pick := func(name, usual string, others ...string) string {
		return rapid.SampledFrom(append(slices.Repeat([]string{usual}, 6), others...)).Draw(t, name)
	}
	set := func(key, value string) {
		switch value {
		case "":
		case "a list":
			st = append(st, []string{"RPUSH", key, "foreign"})
		default:
			st = append(st, []string{"SET", key, value, "PX", strconv.Itoa(hours)})
		}
	}
	token := strconv.Itoa(before)
	set(d.keys[0], pick("lock", token+" me - ht some body", "", token+" other - h some body", strconv.Itoa(ahead)+" me - t some body",
		"9 me - t some body", "9900000000000000 me - t x", "nothing", "a list"))
	if pick("TTL of the lock", "hours", "none") == "none" {
		st = append(st, []string{"PERSIST", d.keys[0]})
	}
	set(d.keys[3], pick("counter", token, token, "", "", "", strconv.Itoa(before+9), "", strconv.Itoa(ahead), "7", "9900000000000000", "12345678901234567", "x", "a list"))

	if pick("gone", "nobody", "another") == "another" { // foreign data under that key is for an acquire to find
		st = append(st, []string{"ZADD", d.keys[4], strconv.Itoa(nowMS + 1000), "another"})
	}
	waiters := rapid.IntRange(0, 3).Draw(t, "waiters")
	for i := range waiters {
		name := pick("owner", "w"+strconv.Itoa(i), "two words", "me")
		channel := pick("channel", "p"+d.told, "s"+d.told, "u"+d.told, "-", "p"+d.told+"deaf", "s"+d.told+"deaf", "?"+d.told)
		entry := strings.Join([]string{
			pick("deadline", strconv.Itoa(nowMS+1), strconv.Itoa(nowMS), strconv.Itoa(nowMS-1), "9", strings.Repeat("9", 30)), channel,
			pick("TTL", "450000", "0", "9999999999999999"), pick("flags", "-", "h", "w", "hw"), "the holder 1",
		}, " ")
		st = append(st, []string{"ZADD", d.keys[1], strconv.Itoa(before + i), name})
		switch pick("entry", "sound", "none", "damaged") {
		case "sound":
			st = append(st, []string{"HSET", d.keys[2], name, entry})
		case "damaged":
			st = append(st, []string{"HSET", d.keys[2], name, "damaged"})
		}
	}
	if waiters == 0 && pick("queue", "none", "foreign") == "foreign" { // without a queue there is no reason to look at its entries
		set(d.keys[1], "foreign")
	}
	return st, pick("who", "me", "stranger"), pick("used", token, strconv.Itoa(before+5), strconv.Itoa(before-5), strconv.Itoa(ahead), "0")
}

// A release that a shortcut can't do must not take it.
func TestShortcutsAreForPlainReleases(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for _, waiting := range []bool{false, true} {
			key := map[bool]string{false: "alone", true: "with-a-waiter"}[waiting]
			release := store.ReleaseRequest{Key: key, Owner: key + ".a", Token: c.Hold(key, key+".a").Token}
			if waiting {
				c.Wait(key, key+".b")
			}
			sv.Pass(time.Millisecond)
			release.Uncertain = true
			if c.session.mayLeave(&store.ReleaseRequest{Key: key, Owner: key + ".a", Token: release.Token, Clean: true, Uncertain: true}) {
				t.Errorf("%s: an uncertain release is for leave.lua, want that it isn't", key)
			}
			if !c.release(release).WasHeld {
				t.Errorf("%s: got WasHeld false, want true", key)
			}
			if waiting {
				c.Heard(store.EventGrant, key+".b")
			}
			c.Want(redistest.Request(key, key+".a"), store.Withdrawn) // the late copy

			kept := store.ReleaseRequest{Key: key + ".kept", Owner: "a", HoldBack: long}
			kept.Token = c.Hold(kept.Key, "a").Token
			if waiting {
				c.Wait(kept.Key, "b")
			}
			sv.Pass(time.Millisecond)
			c.release(kept)
			if info := c.Inspect(kept.Key); !info.Held || info.Holder != "a at home" {
				t.Errorf("%s: got %+v, want it kept back", kept.Key, info)
			}
			if waiting {
				c.Heard(store.EventWake, "b")
			}
			c.heardNothing(sv)
		}
	})
}

// A client that hands its key on among its own waiters may be ahead of the
// server's clock: by its tokens, or because the clock went back.
func TestTheNextTokenIsLargerThanAnyUsed(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		const ahead = 1_000_000_000 // µs
		used := c.Hold("used", "a").Token + ahead
		c.Wait("used", "b")
		sv.Pass(time.Millisecond)
		c.release(store.ReleaseRequest{Key: "used", Owner: "a", Token: used})
		if got := c.Heard(store.EventGrant, "b").Grant.Token; got <= used {
			t.Errorf("token after %d was used: got %d, want a larger one", used, got)
		}

		given := c.Hold("given", "a").Token + ahead
		c.Wait("given", "b")
		sv.Pass(time.Millisecond)
		sv.Do(t, "SET", sv.redisKey("given", 'f'), strconv.FormatInt(given, 10))
		c.release(store.ReleaseRequest{Key: "given", Owner: "a", Token: given - ahead})
		if got := c.Heard(store.EventGrant, "b").Grant.Token; got <= given {
			t.Errorf("token after %d was given: got %d, want a larger one", given, got)
		}
	})
}
