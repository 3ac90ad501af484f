// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A holder that gives its key back for the first time, and whose record would be there
// for a while, shows that nobody else was granted it: its time was not over anywhere.
func TestAFirstReleaseHandsOnAfterAPromotion(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		handsOn := map[string]bool{"first": true, "said-before": false, "about-to-end": false, "asked-meanwhile": false}
		tokens := make(map[string]int64)
		for key := range handsOn {
			tokens[key] = a.Hold(key, "a").Token
			b.Wait(key, key)
		}
		promote()
		sv.Do(t, "PEXPIRE", sv.redisKey("about-to-end", 'l'), "900")
		b.Wait("asked-meanwhile", "asked-meanwhile") // and would not believe such a grant
		for key, want := range handsOn {
			q := store.ReleaseRequest{Key: key, Owner: "a", Token: tokens[key]}
			release := a.release
			if key == "said-before" {
				release = a.releaseAgain
			}
			if !release(q).WasHeld {
				t.Errorf("%s: got WasHeld false, want true", key)
			}
			if want {
				if got := b.Heard(store.EventGrant, "first").Grant.Token; got <= tokens[key] {
					t.Errorf("%s: token after %d: got %d, want a larger one", key, tokens[key], got)
				}
			}
			if info := b.Inspect(key); info.Held != want {
				t.Errorf("%s: got %+v, want Held %v", key, info, want)
			}
		}
		b.heardNothing(sv)
	})
}

func TestAPromotedServerMakesNobodyAHolder(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.Hold("held", "a").Token
		b.Wait("held", "b")
		a.Hold("left", "a")
		b.Wait("left", "b")
		a.Hold("forced", "a")
		b.Wait("forced", "b")
		a.Hold("answer was lost", "a")
		first := a.Hold("released first", "a").Token
		b.Wait("released first", "b")
		promote()

		if !a.releaseAgain(store.ReleaseRequest{Key: "released first", Owner: "a", Token: first}).WasHeld {
			t.Error("Release by who notices: got WasHeld false, want true")
		}
		if got := b.Acquire(redistest.Attempt("free", "b")); !errors.Is(got.Err, store.ErrGrace) || !errors.Is(got.Err, store.ErrUnreachable) ||
			got.Grace < long-5*time.Second || got.Grace > long {
			t.Errorf("a free key: got %+v, want ErrGrace, an ErrUnreachable, and the grace", got)
		}
		if got := b.Wait("free", "b2"); got.Remaining < long-5*time.Second || got.Remaining > long || got.Grace != got.Remaining || got.HolderToken != 0 {
			t.Errorf("a free key: got %+v, want the grace, %v, and no holder", got, long)
		}
		sv.Do(t, "DEL", sv.redisKey("left", 'l'))
		b.Wait("left", "b")
		if got := b.Acquire(redistest.Attempt("held", "c")); got.Status != store.Held || got.HolderToken != token {
			t.Errorf("a key that is held: got %+v, want it held under token %d", got, token)
		}
		if !a.releaseAgain(store.ReleaseRequest{Key: "held", Owner: "a", Token: token}).WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		requeue := redistest.Request("answer was lost", "a2")
		if got := a.Wait("answer was lost", "a"); got.Rank != 0 || got.Ticket == 0 {
			t.Errorf("the holder's request once more: got %+v, want it to wait with its place", got)
		}
		if n := sv.Number(t, "EXISTS", sv.redisKey("answer was lost", 'q')); n != 0 {
			t.Error("who has a record got queued behind itself")
		}
		if got := a.release(store.ReleaseRequest{Key: "answer was lost", Owner: "a", Requeue: &requeue}); got.Requeue.Status != store.Waiting {
			t.Errorf("queue again: got %+v, want it to wait", got.Requeue)
		}
		a.force("forced")
		a.Heard(store.EventForced, "a")
		for _, key := range []string{"held", "left", "forced", "answer was lost", "free", "released first"} {
			if info := b.Inspect(key); info.Held || info.Waiters != 1 {
				t.Errorf("%q: got %+v, want nobody to hold it and one to wait", key, info)
			}
		}
		b.heardNothing(sv)

		for _, key := range []string{"held", "left", "forced"} {
			b.Wait(key, "b")
			sv.endGrace(t, key)
			b.Want(redistest.Request(key, "b"), store.Granted)
		}
	})
}

// A message from before must not look fresh to who has been told to wait since.
func TestWhoWaitsBelievesNoOlderGrant(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		promote()
		before := c.Wait("key", "a").Mark
		if now := sv.clock(t); before < now {
			t.Errorf("mark in the grace: got %d, want more than %d, which is now", before, now)
		}
		sv.endGrace(t, "key")
		if _, err := sv.Try("SET", sv.redisKey("key", 'l'), "1 old - - -", "PX", "60000"); err != nil {
			t.Fatal(err)
		}
		_, ready, _, _, _ := sv.epochOf(t, "key")
		if got := c.Wait("key", "a").Mark; got < ready*1000-1 {
			t.Errorf("mark after the grace: got %d, want at least %d", got, ready*1000-1)
		}
	})
}

func TestAServerThatIsStartedWithoutDataWaits(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	var written kit.Journal
	st := sv.newStore(t, WithLogger(written.Logger(slog.LevelWarn)))
	c := join(t, st)
	for range 3 {
		var grace *store.GraceError
		if got := c.Acquire(redistest.Attempt("key", "a")); !errors.As(got.Err, &grace) {
			t.Fatalf("got %+v, want a GraceError", got)
		}
		if got := grace.Remaining; got <= 0 || got > long+time.Second {
			t.Fatalf("got %v remaining, want at most %v", got, long)
		}
	}
	if got := c.Wait("key", "b").Remaining; got > long+time.Second {
		t.Errorf("got %v remaining, want at most %v", got, long)
	}
	st.log.Close()
	if got := strings.Count(written.String(), "nothing is granted"); got != 1 {
		t.Errorf("log: got %d warnings, want one:\n%s", got, written.String())
	}

	// One that has run for longer than the grace has not forgotten anything lately.
	kit.Eventually(t, "the server is three seconds old", func() bool {
		for line := range strings.Lines(sv.Do(t, "INFO", "server")) {
			if age, ok := strings.CutPrefix(strings.TrimSpace(line), "uptime_in_seconds:"); ok {
				n, err := strconv.Atoi(age)
				return err == nil && n >= 3
			}
		}
		return false
	})
	sv.prefix += "-2"
	quick := redistest.Request("key", "a")
	quick.TTL = 2 * time.Second
	join(t, sv.newStore(t, WithFailoverGrace(2*time.Second))).Want(quick, store.Granted)
}

// A server that was started without data grants nothing while a lease is trusted that
// it knows nothing of.
func TestARestartMakesNoTwoHolders(t *testing.T) {
	t.Parallel()
	p := &pair{sv: ownServer(t)}
	const ttl = 3 * time.Second
	p.sv.acquaint(t, ttl)
	a, b := p.locks(t, ttl, WithFailoverGrace(ttl)), p.locks(t, ttl, WithFailoverGrace(ttl))
	first, err := a.Lock(t.Context(), "key", asynclock.WithRenewal(false))
	if err != nil {
		t.Fatal(err)
	}
	p.sv.own.Kill()
	p.sv.restart(t)
	second := lockPatiently(t, b)
	if first.Valid(0) {
		t.Error("two leases of the key are trusted")
	}
	if second.Token() <= first.Token() {
		t.Errorf("token: got %d, want more than %d", second.Token(), first.Token())
	}
}

// docs/production.md says which servers need no grace. One that writes each command before it answers is
// killed here. That it writes them to the disk is not shown.
func TestAServerThatWritesBeforeItAnswersNeedsNoGrace(t *testing.T) {
	t.Parallel()
	sv := ownServer(t, "--appendonly", "yes", "--appendfsync", "always")
	c := join(t, sv.newStore(t, WithoutFailoverGrace()))
	held, last := c.Hold("held", "a").Token, c.Hold("given back", "a").Token
	c.release(store.ReleaseRequest{Key: "given back", Owner: "a", Token: last})
	sv.own.Kill()
	if err := sv.own.Start(); err != nil {
		t.Fatal(err)
	}
	var got store.AcquireReply
	kit.Eventually(t, "an answer", func() bool {
		got = c.Acquire(redistest.Attempt("held", "b"))
		return got.Err == nil
	})
	if got.Status != store.Held || got.HolderToken != held {
		t.Errorf("a held key: got %+v, want it held with the token %d", got, held)
	}
	c.wantRenewal(store.RenewRequest{Key: "held", Owner: "a", TTL: long, Token: held}, nil)
	if token := c.Hold("given back", "b").Token; token <= last {
		t.Errorf("token: got %d, want more than %d", token, last)
	}
}

// An owner that has lost its key by force, and has not been notified, does not write its
// holding anew, however long the grace is.
func TestForceInTheGraceIsNotUndone(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		sv.setEpoch(t, "key", 0, millis(time.Hour), 0, sv.clock(t)/1000+millis(time.Hour))
		promote()
		c.force("key")
		c.release(store.ReleaseRequest{Key: "key", Owner: "another", Uncertain: true})
		if ttl := sv.Number(t, "PTTL", sv.redisKey("key", 'x')); ttl < millis(59*time.Minute) {
			t.Errorf("the old holder is remembered as gone for %d ms, want the grace, an hour", ttl)
		}
		c.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}, store.ErrExpired)
		if info := c.Inspect("key"); info.Held {
			t.Errorf("got %+v, want nobody to hold it", info)
		}
	})
}

// A request without a ticket may be a repetition by one who has queued, and been
// granted the key since.
func TestWhoQueuesBehindAHolderLearnsOfTheGrace(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		c.Wait("key", "b")
		promote()
		got := c.Wait("key", "b")
		if now := sv.clock(t); got.Mark <= now {
			t.Errorf("mark: got %d, want more than %d, which is now", got.Mark, now)
		}
	})
}

// Whom no message reaches asks again and again elsewhere. Here there is nothing to be
// had before the grace ends.
func TestWhoCannotBeToldAsksWhenTheGraceEnds(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t)).silence()
		promote()
		for rank, owner := range []string{"a", "b", "c"} {
			got := c.Wait("key", owner)
			if got.Rank != rank || got.Recheck <= got.Remaining || got.Recheck > got.Remaining+time.Duration(rank+1)*50*time.Millisecond {
				t.Errorf("rank %d: got %+v, want it to ask when the grace is over, one after the other", rank, got)
			}
		}
		requeue := redistest.Request("key", "d")
		released := c.release(store.ReleaseRequest{Key: "key", Owner: "a", Requeue: &requeue})
		if got := released.Requeue; got.Recheck <= got.Remaining {
			t.Errorf("queued again: got %+v, want it to ask when the grace is over", got)
		}
		sv.endGrace(t, "key")
		c.Want(redistest.Request("key", "b"), store.Granted)
		if got := c.Wait("key", "c"); got.Recheck <= 0 || got.Recheck > time.Second {
			t.Errorf("after the grace: got %+v, want it to ask soon", got)
		}
	})
}
