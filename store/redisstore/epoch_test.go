// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// onPromotedServer runs a test on a real server, with its promote.
func onPromotedServer(t *testing.T, test func(t *testing.T, sv *server, promote func())) {
	t.Helper()
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	test(t, sv, func() { sv.promote(t) })
}

// promote makes the epochs of all buckets those of another server, as if this one had
// been its replica until now.
func (sv *server) promote(t *testing.T) {
	t.Helper()
	sv.promoteFrom(t, strings.Repeat("1", 40))
}

// promoteFrom is promote, with the id of the other server's history.
func (sv *server) promoteFrom(t *testing.T, history string) {
	t.Helper()
	const script = `
		for _, key in ipairs(KEYS) do
			local epoch, found = string.gsub(redis.call('GET', key) or '', '^%x+ (%d+ %d+ %d+ %d+ %d+)$', ARGV[1] .. ' %1')
			if found == 0 then
				return redis.error_reply(key .. ' is no epoch: ' .. epoch)
			end
			redis.call('SET', key, epoch)
			local beside = string.sub(key, 1, -2) .. 'g'
			local cause = redis.call('GET', beside)
			if cause then
				redis.call('SET', beside, ARGV[1] .. string.match(cause, ' .*'))
			end
		end`
	var write []rueidis.Completed
	for names := range sv.Epochs(t, sv.prefix) {
		write = append(write, sv.Raw.B().Eval().Script(script).Numkeys(int64(len(names))).Key(names...).Arg(history).Build())
	}
	for _, result := range sv.Raw.DoMulti(t.Context(), write...) {
		if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
	}
}

// epochFields is how many words an epoch has.
const epochFields = 6

// epochOf reads the epoch of a key's bucket: the id, and the first four numbers in ms.
func (sv *server) epochOf(t *testing.T, key string) (id string, ready, longest, older, turn int64) {
	t.Helper()
	fields := strings.Fields(sv.Do(t, "GET", sv.epoch(bucketOf(key))))
	if len(fields) != epochFields {
		t.Fatalf("epoch of %q: got %q, want %d fields", key, fields, epochFields)
	}
	var n [4]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return fields[0], n[0], n[1], n[2], n[3]
}

// setEpoch writes the numbers of the epoch of a key's bucket. The clock was noted just now.
func (sv *server) setEpoch(t *testing.T, key string, ready, longest, older, turn int64) {
	t.Helper()
	id, _, _, _, _ := sv.epochOf(t, key)
	fields := []string{id}
	for _, n := range []int64{ready, longest, older, turn, sv.clock(t) / 1000} {
		fields = append(fields, strconv.FormatInt(n, 10))
	}
	sv.Do(t, "SET", sv.epoch(bucketOf(key)), strings.Join(fields, " "))
}

// The same goes for the shortcuts: what they find must not be enough.
func TestAnEpochFromTheFutureOrForAnotherTTLIsNoShortcut(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		id, _, _, _, turn := sv.epochOf(t, "key")
		write := func(key string, ready, longest int64) {
			sv.Do(t, "SET", sv.epoch(bucketOf(key)), fmt.Sprint(id, " ", ready, " ", longest, " 0 ", turn, " ", sv.clock(t)/1000))
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		now := sv.clock(t) / 1000
		write("key", now+10_000, 20_000)
		other := join(t, sv.store(t)) // it did not leave the key vacant, and can't know that nobody had it
		if got := other.Acquire(redistest.Attempt("key", "b")); !errors.Is(got.Err, store.ErrUnreachable) {
			t.Errorf("in the grace: got %+v, want ErrUnreachable", got)
		}
		// Set back, the clock prolongs the grace, but to no more than a whole one.
		write("key", now+1_000_000_000, 20_000)
		c.Wait("key", "c")
		if _, ready, _, _, _ := sv.epochOf(t, "key"); ready > now+60_000 {
			t.Errorf("the grace ends in %d ms, want at most 20000", ready-now)
		}
		c.release(store.ReleaseRequest{Key: "key", Owner: "c"})
		// A longer TTL than any before is remembered, also if that was less than the
		// least grace.
		for _, before := range []int64{1000, 19_000} {
			key := "another" + strconv.FormatInt(before, 10)
			write(key, 1, before)
			c.Hold(key, "d")
			if _, _, longest, _, _ := sv.epochOf(t, key); longest != millis(long) {
				t.Errorf("longest TTL after %d: got %d, want %d", before, longest, millis(long))
			}
		}
	})
}

func TestTheLongestTTLIsRememberedForADayOrTwo(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		renew := func(ttl time.Duration) {
			t.Helper()
			if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: ttl, Token: token}).Err; err != nil {
				t.Fatal(err)
			}
		}
		want := func(when string, longest, older time.Duration) {
			t.Helper()
			if _, _, l, o, _ := sv.epochOf(t, "key"); l != millis(longest) || o != millis(older) {
				t.Errorf("%s: got %d and %d ms, want %v and %v", when, l, o, longest, older)
			}
		}
		nextDay := func() {
			_, ready, longest, older, _ := sv.epochOf(t, "key")
			sv.setEpoch(t, "key", ready, longest, older, 1)
		}
		c.wantRenewal(store.RenewRequest{Key: "key", Owner: "stranger", TTL: time.Hour, Token: token}, store.ErrStolen)
		renew(time.Hour)
		want("a renewal for an hour", time.Hour, 0)
		if ttl := sv.Number(t, "PTTL", sv.epoch(bucketOf("key"))); ttl < 2*24*3600_000 {
			t.Errorf("the epoch lives for %d ms, want three days", ttl)
		}
		nextDay()
		renew(2 * time.Hour)
		want("a renewal for two, the day after", 2*time.Hour, time.Hour)
		nextDay()
		c.Hold("key", "a")
		c.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		c.Hold("key", "b")
		want("an acquire, the day after", long, 2*time.Hour)
		promote()
		c.Acquire(redistest.Attempt("key", "c"))
		c.release(store.ReleaseRequest{Key: "key", Owner: "b"})
		if got := c.Wait("key", "c"); got.Remaining < 2*time.Hour-time.Minute {
			t.Errorf("grace: got %v, want two hours", got.Remaining)
		}
	})
}

func TestTTLsOfPeriodsThatAreOverDoNotCount(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		sv.setEpoch(t, "key", 0, millis(time.Hour), millis(24*time.Hour), 1)
		promote()
		for range 2 {
			if got := c.Wait("key", "b").Remaining; got > time.Hour || got < 59*time.Minute {
				t.Errorf("grace: got %v, want an hour, the longest TTL of the period before", got)
			}
		}
	})
}

func TestAClockThatIsSetBackForgetsNoTTL(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		later := sv.clock(t)/1000 + millis(100*time.Hour)
		for name, look := range map[string]func(){
			"acquire": func() { c.Wait("key", "b") },
			"renew": func() {
				if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}).Err; err != nil {
					t.Fatal(err)
				}
			},
		} {
			sv.setEpoch(t, "key", 0, millis(long), millis(24*time.Hour), later)
			look()
			_, _, _, older, turn := sv.epochOf(t, "key")
			if older != millis(24*time.Hour) || turn >= later {
				t.Errorf("%s: got an older TTL of %d ms until %d, want 24 h, in a period that begins now", name, older, turn)
			}
		}
	})
}

// rightsOfTheBlind leave out the right to read a server's history, alone or in a Cluster.
var rightsOfTheBlind = strings.ReplaceAll(documentedRights+rightsInCluster, "+info|replication +info|server +info|memory", "")

// Where the server hides its history, locks do without the guard, and say so.
func TestAServerThatHidesItsHistoryIsNotGuarded(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	var written kit.Journal
	st := sv.as(t, "blind", rightsOfTheBlind).newStore(t, WithLogger(written.Logger(slog.LevelWarn)))
	a, b := join(t, st), join(t, st)
	a.Hold("key", "a")
	b.waitForMessage("key", "b")
	a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
	b.Heard(store.EventGrant, "b")
	st.log.Close()
	if got := strings.Count(written.String(), "no guard"); got != 1 {
		t.Errorf("log: got %d warnings, want one:\n%s", got, written.String())
	}
}

// Rights may change, so that a store that had to do without the guard looks again.
func TestTheGuardComesBackWhenHistoryIsShown(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.as(t, "blind", rightsOfTheBlind).newStore(t)
	c := join(t, st)
	batch := []store.AcquireRequest{redistest.Attempt("key", "a"), redistest.Attempt("key", "rival")}
	if got := c.session.Acquire(t.Context(), batch); got[0].Status != store.Granted || got[1].Status != store.Held {
		t.Errorf("with the history hidden: got %+v, want the key for the first and not for its rival", got)
	}
	sv.Do(t, "ACL", "SETUSER", "blind", "+info")
	sv.acquaint(t, long)
	sv.promote(t)
	c.Want(redistest.Attempt("another", "b"), store.Granted)
	c.release(store.ReleaseRequest{Key: "another", Owner: "b"})
	if until := st.hiding("another").Load(); until == nil || time.Until(*until) > hiddenFor {
		t.Fatalf("the guard is off until %v, want for at most %v", until, hiddenFor)
	}
	past := time.Now()
	st.hiding("another").Store(&past)
	if got := c.Acquire(redistest.Attempt("another", "c")); !errors.Is(got.Err, store.ErrUnreachable) {
		t.Errorf("a while later, in the grace: got %+v, want ErrUnreachable", got)
	}
}

// One node of a Cluster may hide its history while others show theirs.
func TestTheGuardIsOffOnlyWhereHistoryIsHidden(t *testing.T) {
	t.Parallel()
	sv, nodes := ownCluster(t)
	sv.acquaint(t, long)
	st := sv.as(t, "blind", rightsOfTheBlind, nodes...).newStore(t)
	for _, node := range nodes[1:] {
		node.Do(t, "ACL", "SETUSER", "blind", "+info")
	}
	sv.promote(t)
	c := join(t, st)
	for i := range 30 {
		key := "key" + strconv.Itoa(i)
		got := c.Acquire(redistest.Attempt(key, "a"))
		if blind := owner(t, nodes, sv.redisKey(key, 'l')) == 0; blind && got.Status != store.Granted || !blind && !errors.Is(got.Err, store.ErrUnreachable) {
			t.Errorf("%s, of a node that hides its history: %v: got %+v, want it granted only there", key, blind, got)
		}
	}
}

func TestADamagedEpochIsReported(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		token := c.Hold("held", "a").Token
		for _, key := range []string{"key", "held"} {
			name := sv.epoch(bucketOf(key))
			for _, damage := range [][]string{
				{"SET", name, "something else"},
				{"SET", name, strings.Repeat("1", 200)},
				{"LPUSH", name, "x"},
			} {
				sv.Do(t, "DEL", name)
				sv.Do(t, damage...)
				if got := c.Acquire(redistest.Request("key", "b")).Err; key == "key" && (!errors.Is(got, store.ErrForeignData) || !strings.Contains(got.Error(), name)) {
					t.Errorf("%q: Acquire: got %v, want ErrForeignData that names %q", damage, got, name)
				}
				if got := c.renew(store.RenewRequest{Key: "held", Owner: "a", TTL: long, Token: token}).Err; got != nil {
					t.Errorf("%q: Renew: got %v, want no error", damage, got)
				}
			}
		}
	})
}
