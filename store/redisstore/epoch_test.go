// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redistest"
)

// onPromotedServer runs a test on a real server. Its promote makes the epochs of all
// buckets those of another server, as if this one had been its replica until now.
func onPromotedServer(t *testing.T, test func(t *testing.T, sv *server, promote func())) {
	t.Helper()
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	test(t, sv, func() {
		for bucket := range buckets {
			fields := strings.Fields(sv.do(t, "GET", sv.epoch(bucket)))
			if len(fields) != 5 {
				t.Fatalf("epoch of bucket %d: got %q, want 5 fields", bucket, fields)
			}
			fields[0] = strings.Repeat("0", 40)
			sv.do(t, "SET", sv.epoch(bucket), strings.Join(fields, " "))
		}
	})
}

// epochOf reads the epoch of a key's bucket: the id, and the four numbers in ms.
func (sv *server) epochOf(t *testing.T, key string) (id string, ready, longest, older, turn int64) {
	t.Helper()
	fields := strings.Fields(sv.do(t, "GET", sv.epoch(bucketOf(key))))
	if len(fields) != 5 {
		t.Fatalf("epoch of %q: got %q, want 5 fields", key, fields)
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

func try(key, owner string) asynclock.AcquireRequest {
	q := request(key, owner)
	q.Wait = false
	return q
}

func TestAPromotedServerMakesNobodyAHolder(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.hold("held", "a").First
		b.wait("held", "b")
		a.hold("left", "a")
		b.wait("left", "b")
		a.hold("forced", "a")
		b.wait("forced", "b")
		a.hold("answer was lost", "a")
		first := a.hold("released first", "a").First
		b.wait("released first", "b")
		promote()

		if !a.release(asynclock.ReleaseRequest{Key: "released first", Owner: "a", Token: first}).WasHeld {
			t.Error("Release by who notices: got WasHeld false, want true")
		}
		if got := b.acquire(try("free", "b")); !errors.Is(got.Err, asynclock.ErrUnreachable) {
			t.Errorf("a free key: got %+v, want ErrUnreachable", got)
		}
		if got := b.wait("free", "b2"); got.Remaining < long-5*time.Second || got.Remaining > long {
			t.Errorf("a free key: got %v remaining, want the grace, %v", got.Remaining, long)
		}
		sv.do(t, "DEL", sv.redisKey("left", 'l'))
		b.wait("left", "b")
		if got := b.acquire(try("held", "c")); got.Status != asynclock.Held || got.Token != token {
			t.Errorf("a key that is held: got %+v, want it held under token %d", got, token)
		}
		if !a.release(asynclock.ReleaseRequest{Key: "held", Owner: "a", Token: token}).WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		requeue := request("answer was lost", "a2")
		if got := a.wait("answer was lost", "a"); got.Rank != 0 || got.Ticket == 0 {
			t.Errorf("the holder's request once more: got %+v, want it to wait with its place", got)
		}
		if n := sv.number(t, "EXISTS", sv.redisKey("answer was lost", 'q')); n != 0 {
			t.Error("who has a record got queued behind itself")
		}
		if got := a.release(asynclock.ReleaseRequest{Key: "answer was lost", Owner: "a", Requeue: &requeue}); got.Requeue.Status != asynclock.Waiting {
			t.Errorf("queue again: got %+v, want it to wait", got.Requeue)
		}
		if held, err := a.session.Force(t.Context(), "forced"); err != nil || !held {
			t.Errorf("Force: got %v, %v, want true", held, err)
		}
		a.heard(asynclock.EventForced, "a")
		for _, key := range []string{"held", "left", "forced", "answer was lost", "free", "released first"} {
			if info := b.inspect(key); info.Held || info.Waiters != 1 {
				t.Errorf("%q: got %+v, want nobody to hold it and one to wait", key, info)
			}
		}
		b.heardNothing(sv)

		for _, key := range []string{"held", "left", "forced"} {
			b.wait(key, "b")
			sv.endGrace(t, key)
			b.want(request(key, "b"), asynclock.Granted)
		}
	})
}

// The same goes for the shortcuts: what they find must not be enough.
func TestAnEpochFromTheFutureOrForAnotherTTLIsNoShortcut(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		id, _, _, _, turn := sv.epochOf(t, "key")
		write := func(key string, ready, longest int64) {
			sv.do(t, "SET", sv.epoch(bucketOf(key)), id+" "+strconv.FormatInt(ready, 10)+" "+strconv.FormatInt(longest, 10)+" 0 "+strconv.FormatInt(turn, 10))
		}
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "a"})
		now := sv.clock(t) / 1000
		write("key", now+10_000, 20_000)
		if got := c.acquire(try("key", "b")); !errors.Is(got.Err, asynclock.ErrUnreachable) {
			t.Errorf("in the grace: got %+v, want ErrUnreachable", got)
		}
		// Set back, the clock prolongs the grace, but to no more than a whole one.
		write("key", now+1_000_000_000, 20_000)
		c.wait("key", "c")
		if _, ready, _, _, _ := sv.epochOf(t, "key"); ready > now+60_000 {
			t.Errorf("the grace ends in %d ms, want at most 20000", ready-now)
		}
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "c"})
		// A longer TTL than any before is remembered.
		write("another", 1, 1000)
		c.hold("another", "d")
		if _, _, longest, _, _ := sv.epochOf(t, "another"); longest != millis(long) {
			t.Errorf("longest TTL: got %d, want %d", longest, millis(long))
		}
	})
}

func TestTheLongestTTLIsRememberedForADayOrTwo(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.hold("key", "a").First
		renew := func(ttl time.Duration) {
			t.Helper()
			if err := c.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: ttl, Token: token}).Err; err != nil {
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
			id, ready, longest, older, _ := sv.epochOf(t, "key")
			sv.do(t, "SET", sv.epoch(bucketOf("key")), strings.Join([]string{
				id, strconv.FormatInt(ready, 10), strconv.FormatInt(longest, 10), strconv.FormatInt(older, 10), "1",
			}, " "))
		}
		renew(time.Hour)
		want("a renewal for an hour", time.Hour, 0)
		if ttl := sv.number(t, "PTTL", sv.epoch(bucketOf("key"))); ttl < 2*24*3600_000 {
			t.Errorf("the epoch lives for %d ms, want three days", ttl)
		}
		nextDay()
		renew(2 * time.Hour)
		want("a renewal for two, the day after", 2*time.Hour, time.Hour)
		nextDay()
		c.hold("key", "a")
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "a"})
		c.hold("key", "b")
		want("an acquire, the day after", long, 2*time.Hour)
		promote()
		c.acquire(try("key", "c"))
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "b"})
		if got := c.wait("key", "c"); got.Remaining < 2*time.Hour-time.Minute {
			t.Errorf("grace: got %v, want two hours", got.Remaining)
		}
	})
}

// A message from before must not look fresh to who has been told to wait since.
func TestWhoWaitsBelievesNoOlderGrant(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		promote()
		before := c.wait("key", "a").Mark
		if now := sv.clock(t); before < now {
			t.Errorf("mark in the grace: got %d, want more than %d, which is now", before, now)
		}
		sv.endGrace(t, "key")
		if _, err := sv.try("SET", sv.redisKey("key", 'l'), "1 old - - -", "PX", "60000"); err != nil {
			t.Fatal(err)
		}
		_, ready, _, _, _ := sv.epochOf(t, "key")
		if got := c.wait("key", "a").Mark; got < ready*1000-1 {
			t.Errorf("mark after the grace: got %d, want at least %d", got, ready*1000-1)
		}
	})
}

func TestHoldersWriteAnewWhatIsMissing(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.hold("key", "a").First
		renewal := asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token + 3, Holder: "a at home"}
		sv.do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		if got := a.renew(renewal).Err; !errors.Is(got, asynclock.ErrExpired) {
			t.Errorf("without a reason: got %v, want ErrExpired", got)
		}
		promote()
		b.wait("key", "b")
		b.wait("key", "a") // the client waited, and the server forgot that it was granted the key
		if got := a.renew(renewal); got.Err != nil || got.Waiters != 1 {
			t.Errorf("got %+v, want it renewed, and b to wait", got)
		}
		if info := b.inspect("key"); !info.Held || info.Token != token+3 || info.Holder != "a at home" || info.Waiters != 1 {
			t.Errorf("got %+v, want it held by a under token %d", info, token+3)
		}
		older := asynclock.RenewRequest{Key: "key", Owner: "older", TTL: long, Token: token + 2}
		if got := b.renew(older).Err; !errors.Is(got, asynclock.ErrStolen) {
			t.Errorf("by one with a smaller token: got %v, want ErrStolen", got)
		}
		same := asynclock.RenewRequest{Key: "key", Owner: "same", TTL: long, Token: token + 3}
		if got := b.renew(same).Err; !errors.Is(got, asynclock.ErrStolen) {
			t.Errorf("by one with the same token: got %v, want ErrStolen", got)
		}
		newer := asynclock.RenewRequest{Key: "key", Owner: "newer", TTL: long, Token: token + 9}
		if got := b.renew(newer).Err; got != nil {
			t.Errorf("by one with a larger token: got %v, want it renewed", got)
		}
		// It hears of those who queue, and of those who ask in vain, for all the server knows.
		b.release(asynclock.ReleaseRequest{Key: "key", Owner: "b"})
		a.wait("key", "c")
		b.heard(asynclock.EventContended, "newer")
		b.heard(asynclock.EventWanted, "newer")
		if !b.release(asynclock.ReleaseRequest{Key: "key", Owner: "newer", Token: token + 9}).WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		if got := b.renew(newer).Err; !errors.Is(got, asynclock.ErrExpired) {
			t.Errorf("a renewal that is late: got %v, want ErrExpired", got)
		}
		sv.endGrace(t, "key")
		if got := a.want(request("key", "c"), asynclock.Granted); got.First <= token+9 {
			t.Errorf("token: got %d, want more than %d", got.First, token+9)
		}
	})
}

// A release in the grace need not be preceded by a renewal.
func TestAReleaseOfWhatWasForgotten(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.hold("key", "a").First + 1e9
		sv.do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		c.hold("another", "a")
		c.wait("another", "b")
		promote()
		if !c.release(asynclock.ReleaseRequest{Key: "key", Owner: "a", Token: token}).WasHeld {
			t.Error("got WasHeld false, want true: nobody can have been granted the key since")
		}
		if got := sv.number(t, "GET", sv.redisKey("key", 'f')); got != token {
			t.Errorf("counter: got %d, want %d as used", got, token)
		}
		if c.release(asynclock.ReleaseRequest{Key: "another", Owner: "b"}).WasHeld {
			t.Error("of a waiter: got WasHeld true, want false")
		}
		if got := c.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}).Err; !errors.Is(got, asynclock.ErrExpired) {
			t.Errorf("a renewal that is late: got %v, want ErrExpired", got)
		}
	})
}

// Nor is it a shortcut past the epoch: the renewal may have been sent twice.
func TestAReleaseOfWhatWasWrittenAnew(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		renewal := asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: c.hold("key", "a").First}
		sv.do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		promote()
		if got := c.renew(renewal).Err; got != nil {
			t.Fatalf("Renew: got %v, want no error", got)
		}
		if !c.release(asynclock.ReleaseRequest{Key: "key", Owner: "a", Token: renewal.Token}).WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		if got := c.renew(renewal).Err; !errors.Is(got, asynclock.ErrExpired) {
			t.Errorf("a renewal that is late: got %v, want ErrExpired", got)
		}
	})
}

// FLUSHALL leaves no trace to others than those who hold something.
func TestARenewalShowsThatAllWasFlushed(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.hold("key", "a").First
		sv.do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'), sv.epoch(bucketOf("key")))
		if got := a.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}).Err; got != nil {
			t.Errorf("Renew: got %v, want no error", got)
		}
		a.release(asynclock.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		if got := b.acquire(try("key", "b")); !errors.Is(got.Err, asynclock.ErrUnreachable) {
			t.Errorf("Acquire: got %+v, want ErrUnreachable", got)
		}
	})
}

func TestAServerThatIsStartedWithoutDataWaits(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	var written log
	st := sv.newStore(t, WithLogger(slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	c := join(t, st)
	for range 3 {
		if got := c.acquire(try("key", "a")); !errors.Is(got.Err, asynclock.ErrUnreachable) {
			t.Fatalf("got %+v, want ErrUnreachable", got)
		}
	}
	if got := c.wait("key", "b").Remaining; got > long+time.Second {
		t.Errorf("got %v remaining, want at most %v", got, long)
	}
	if got := strings.Count(written.String(), "nothing is granted"); got != 1 {
		t.Errorf("log: got %d warnings, want one:\n%s", got, written.String())
	}

	// One that has run for longer than the grace has not forgotten anything lately.
	eventually(t, "the server is three seconds old", func() bool {
		for line := range strings.Lines(sv.do(t, "INFO", "server")) {
			if age, ok := strings.CutPrefix(strings.TrimSpace(line), "uptime_in_seconds:"); ok {
				n, err := strconv.Atoi(age)
				return err == nil && n >= 3
			}
		}
		return false
	})
	sv.prefix += "-2"
	quick := request("key", "a")
	quick.TTL = 2 * time.Second
	join(t, sv.newStore(t, WithFailoverGrace(2*time.Second))).want(quick, asynclock.Granted)
}

// A server that was started without data grants nothing while a lease is trusted that
// it knows nothing of.
func TestARestartMakesNoTwoHolders(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	process := startServer(t, addr)
	p := &pair{sv: onServer(t, rueidis.ClientOption{InitAddress: []string{addr}})}
	const ttl = 3 * time.Second
	p.sv.acquaint(t, ttl)
	a, b := p.locks(t, WithFailoverGrace(ttl)), p.locks(t, WithFailoverGrace(ttl))
	first, err := a.Lock(t.Context(), "key", asynclock.WithTTL(ttl), asynclock.WithoutRenewal())
	if err != nil {
		t.Fatal(err)
	}
	process.Kill()
	startServer(t, addr)
	second := lockPatiently(t, b, asynclock.WithTTL(ttl))
	if first.Valid(0) {
		t.Error("two leases of the key are trusted")
	}
	if second.Token() <= first.Token() {
		t.Errorf("token: got %d, want more than %d", second.Token(), first.Token())
	}
}

// Where the server hides its history, locks do without the guard, and say so.
func TestAServerThatHidesItsHistoryIsNotGuarded(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.do(t, append([]string{"ACL", "SETUSER", "blind", "on", ">secret", "resetkeys", "resetchannels", "~" + sv.prefix + ":{*", "&" + sv.prefix + ":*", "-@all"},
		sv.known(t, strings.Fields(strings.ReplaceAll(documentedRights, "+info|replication +info|server", "")))...)...)
	option := sv.option
	option.Username, option.Password = "blind", "secret"
	var written log
	st, err := Open(option, WithPrefix(sv.prefix), WithLogger(slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	a, b := join(t, st), join(t, st)
	a.hold("key", "a")
	b.waitForMessage("key", "b")
	a.release(asynclock.ReleaseRequest{Key: "key", Owner: "a"})
	b.heard(asynclock.EventGrant, "b")
	if got := strings.Count(written.String(), "no guard"); got != 1 {
		t.Errorf("log: got %d warnings, want one:\n%s", got, written.String())
	}
}

func TestADamagedEpochIsReported(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		token := c.hold("held", "a").First
		for _, key := range []string{"key", "held"} {
			name := sv.epoch(bucketOf(key))
			for _, damage := range [][]string{
				{"SET", name, "something else"},
				{"SET", name, strings.Repeat("1", 200)},
				{"LPUSH", name, "x"},
			} {
				sv.do(t, "DEL", name)
				sv.do(t, damage...)
				if got := c.acquire(request("key", "b")).Err; key == "key" && (!errors.Is(got, asynclock.ErrForeignData) || !strings.Contains(got.Error(), name)) {
					t.Errorf("%q: Acquire: got %v, want ErrForeignData that names %q", damage, got, name)
				}
				if got := c.renew(asynclock.RenewRequest{Key: "held", Owner: "a", TTL: long, Token: token}).Err; got != nil {
					t.Errorf("%q: Renew: got %v, want no error", damage, got)
				}
			}
		}
	})
}

func TestFailoverGraceIsChecked(t *testing.T) {
	for _, bad := range []time.Duration{-1, 0, time.Millisecond, 25 * time.Hour} {
		if _, err := newSettings([]Option{WithFailoverGrace(bad)}); !errors.Is(err, asynclock.ErrBadOption) {
			t.Errorf("WithFailoverGrace(%v): got %v, want ErrBadOption", bad, err)
		}
	}
}
