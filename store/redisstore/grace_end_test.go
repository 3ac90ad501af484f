// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// lasts is how long a grace lasts in these tests: longer than they do.
const lasts = time.Hour

// oneAtATime is held by a test that asks for all graces again and again: together such tests leave a server no time for others.
var oneAtATime sync.Mutex

// lasting is store, with such a grace.
func (sv *server) lasting(t *testing.T, opts ...Option) *Store {
	t.Helper()
	oneAtATime.Lock()
	t.Cleanup(oneAtATime.Unlock)
	sv.acquaint(t, lasts)
	return sv.newStore(t, opts...)
}

// theGrace returns the only grace that there is.
func theGrace(t *testing.T, st *Store) store.Grace {
	t.Helper()
	graces, err := st.Graces(t.Context())
	if err != nil || len(graces) != 1 {
		t.Fatalf("Graces: got %+v, %v, want one", graces, err)
	}
	return graces[0]
}

// found is how the only grace is found.
func found(t *testing.T, st *Store) *shardGrace {
	t.Helper()
	found, err := st.findGraces(t.Context())
	found = slices.DeleteFunc(found, func(s *shardGrace) bool { return s.grace.Left == 0 })
	if err != nil || len(found) != 1 {
		t.Fatalf("got %+v, %v, want one grace", found, err)
	}
	return found[0]
}

// endGrace ends it, by what the caller knows.
func endGrace(t *testing.T, st *Store) store.GraceEnded {
	t.Helper()
	g := theGrace(t, st)
	ended, err := st.EndGrace(t.Context(), store.GraceEnd{History: g.History, Before: g.Before, NothingLost: true})
	if err != nil || ended.Unproven != 0 {
		t.Fatalf("EndGrace: got %+v, %v", ended, err)
	}
	return ended
}

// When somebody has ended a grace, keys are granted. Tokens are larger than any that the old server can have given, by
// each way to a grant, although the clock is not.
func TestTokensRiseWhenAGraceIsEnded(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		log := &kit.Journal{}
		st := sv.lasting(t, WithLogger(log.Logger(slog.LevelInfo)))
		a, b := join(t, st), join(t, st)
		old := map[string]int64{"held": a.Hold("held", "a").Token, "held too": a.Hold("held too", "a").Token}
		a.release(store.ReleaseRequest{Key: "idle", Owner: "a", Token: a.Hold("idle", "a").Token})
		b.Wait("held too", "b") // and asks again only after the end
		promote()
		mark := b.Wait("free", "b").Mark
		b.Wait("held", "b")
		if ended := endGrace(t, st); ended.Ended != buckets || ended.Left != 0 || ended.Woken != 1 {
			t.Errorf("EndGrace: got %+v, want all %d buckets at once, and one waiter woken", ended, buckets)
		}
		if graces, err := st.Graces(t.Context()); err != nil || graces != nil {
			t.Errorf("Graces: got %+v, %v, want none", graces, err)
		}
		b.Heard(store.EventWake, "b")
		if got := b.Hold("free", "b").Token; got <= mark {
			t.Errorf("who waited: token: got %d, want more than %d", got, mark)
		}
		for _, key := range []string{"idle", "new"} {
			last := mark
			for _, owner := range []string{"b1", "b2", "b3"} { // by any shortcut that might be
				got := b.Hold(key, owner).Token
				if got <= last {
					t.Errorf("%s: token: got %d, want more than %d", key, got, last)
				}
				last = got
				b.release(store.ReleaseRequest{Key: key, Owner: owner, Token: got})
			}
		}
		if got := b.Wait("held too", "b").Mark; got < mark {
			t.Errorf("who asks after the end: mark: got %d, want %d", got, mark)
		}
		for key, token := range old {
			a.release(store.ReleaseRequest{Key: key, Owner: "a", Token: token})
			if got := b.Heard(store.EventGrant, "b").Grant.Token; got <= mark {
				t.Errorf("%s: token: got %d, want more than %d", key, got, mark)
			}
		}
		if n := strings.Count(log.String(), "somebody has ended the grace"); n != 1 {
			t.Errorf("log: got %d lines about the end, want one:\n%s", n, log)
		}
		promote()
		if got := b.Acquire(redistest.Attempt("another", "b")).Err; !errors.Is(got, store.ErrGrace) {
			t.Errorf("after another failover: got %v, want %v", got, store.ErrGrace)
		}
	})
}

// A holding that the server has forgotten is not written anew when somebody has ended the grace: another may have the key.
func TestAHoldingIsLostWhenAGraceIsEnded(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a, b := join(t, st), join(t, st)
		token := a.Hold("key", "a").Token
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))
		promote()
		endGrace(t, st)
		a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}, store.ErrLost)
		b.Hold("key", "b")
	})
}

// The script itself compares what is meant with what is: the server may be replaced between a look and an end.
func TestAnEndComparesWhatIs(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		promote()
		another := found(t, st)
		another.grace.History = another.of.history
		if ended, err := st.endBuckets(t.Context(), another, true); !errors.Is(err, store.ErrGraceChanged) || ended.Ended != 0 {
			t.Errorf("another history: got %+v, %v", ended, err)
		}
		for name, of := range map[string]origin{
			"a server that the new one did not follow": found(t, st).of,
			"another history before":                   {strings.Repeat("2", 40), found(t, st).of.process},
			"another process":                          {found(t, st).of.history, strings.Repeat("2", 40)},
		} {
			s := found(t, st)
			s.of = of
			if ended, err := st.endBuckets(t.Context(), s, false); !errors.Is(err, store.ErrGraceUnproven) || ended != (store.GraceEnded{Unproven: buckets}) {
				t.Errorf("%s: got %+v, %v", name, ended, err)
			}
		}
		s := found(t, st)
		s.of.history = strings.Repeat("2", 40)
		if ended, err := st.endBuckets(t.Context(), s, true); !errors.Is(err, store.ErrGraceUnproven) || ended != (store.GraceEnded{Unproven: buckets}) {
			t.Errorf("another history before, and nothing was lost: got %+v, %v", ended, err)
		}
		if g := theGrace(t, st); g.Unused != buckets {
			t.Errorf("Graces: got %+v, want that nothing has changed", g)
		}

		followed := sv.fact("master_replid2") // as if it had been a replica of that
		sv.promoteFrom(t, followed)
		s = found(t, st)
		process := s.of.process
		for _, tt := range []struct {
			process string
			want    store.GraceEnded
		}{{strings.Repeat("2", 40), store.GraceEnded{Unproven: buckets}}, {process, store.GraceEnded{Ended: buckets}}} {
			s.of.process = tt.process
			if ended, _ := st.endBuckets(t.Context(), s, false); ended != tt.want {
				t.Errorf("process %s: got %+v, want %+v", tt.process, ended, tt.want)
			}
		}
	})
}

// The cause lasts as long as its epoch, and one that is not there, or is something else, is in nobody's way.
func TestACauseLastsAsLongAsItsEpoch(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		epoch := sv.epoch(bucketOf("key"))
		cause := strings.TrimSuffix(epoch, "e") + "g"
		said := sv.Do(t, "GET", cause)
		var token int64
		for _, way := range []struct {
			name string
			use  func()
		}{
			{"acquire", func() { token = a.Hold("key", "a").Token }},
			{"renew", func() { a.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}) }},
			{"renew, without a cause yet", func() {
				sv.Do(t, "DEL", cause)
				another := join(t, sv.newStore(t)) // which has not told the bucket of this TTL within a minute
				another.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token})
				now := strings.Fields(sv.Do(t, "GET", cause))
				if fields := strings.Fields(said); len(now) != len(fields) || now[0] != fields[0] || now[1] != fields[1] {
					t.Errorf("got %q, want as in %q", now, fields)
				}
				said = sv.Do(t, "GET", cause)
			}},
		} {
			fields := strings.Fields(sv.Do(t, "GET", epoch))
			fields[4] = strconv.FormatInt(sv.clock(t)/1000-1, 10) // the period is over
			sv.Do(t, "SET", epoch, strings.Join(fields, " "))
			sv.Do(t, "PEXPIRE", cause, "60000")
			way.use()
			if got := sv.Do(t, "GET", cause); got != said {
				t.Errorf("%s: got %q, want %q", way.name, got, said)
			}
			if ours, theirs := sv.Number(t, "PTTL", cause), sv.Number(t, "PTTL", epoch); ours < theirs-1000 {
				t.Errorf("%s: TTL: got %d ms, want %d, as the epoch's", way.name, ours, theirs)
			}
		}
		promote()
		a.Wait("key", "b") // the grace begins
		said = sv.Do(t, "GET", cause)
		for name, write := range map[string][]string{"none": {"DEL", cause}, "another type": {"RPUSH", cause, "x"}, "another text": {"SET", cause, "x"}} {
			sv.Do(t, "DEL", cause)
			sv.Do(t, write...)
			if got := a.Wait("key", "b").Grace; got == 0 {
				t.Errorf("%s: want that the grace goes on", name)
			}
			q := store.GraceEnd{History: sv.fact("master_replid"), NothingLost: true}
			if ended, err := st.EndGrace(t.Context(), q); !errors.Is(err, store.ErrGraceUnproven) || ended.Ended != 0 {
				t.Errorf("%s: got %+v, %v", name, ended, err)
			}
		}
		sv.Do(t, "SET", cause, said)
		endGrace(t, st)
		if got := a.Wait("key", "b").Grace; got != 0 {
			t.Errorf("the cause itself: got %v, want that the grace has ended", got)
		}
	})
}

// A grace ends for who has looked at it. Nothing changes for another one, or without evidence.
func TestAnEndIsThatOfOneGrace(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		a.Hold("key", "a")
		promote()
		g := theGrace(t, st)
		if g.Unused != buckets || g.Waiting != 0 || g.Parts != buckets || g.Before != strings.Repeat("1", 40) || g.Longest != lasts || !g.Since.IsZero() || !g.Until.IsZero() {
			t.Errorf("a grace that has not begun: got %+v", g)
		}
		a.Wait("key", "b")
		g = theGrace(t, st)
		if g.Unused != buckets-1 || g.Waiting != 1 || g.Since.IsZero() || g.Until.Sub(g.Since) < g.Left || g.Left < lasts/2 {
			t.Errorf("a grace that runs: got %+v", g)
		}
		for name, tt := range map[string]struct {
			end  store.GraceEnd
			want error
		}{
			"nobody knows":           {store.GraceEnd{History: g.History, Before: g.Before}, store.ErrGraceUnproven},
			"another history":        {store.GraceEnd{History: g.Before, Before: g.Before, NothingLost: true}, store.ErrGraceChanged},
			"another history before": {store.GraceEnd{History: g.History, Before: g.History, NothingLost: true}, store.ErrGraceChanged},
			"no history before":      {store.GraceEnd{History: g.History, NothingLost: true}, store.ErrGraceChanged},
			"nothing":                {store.GraceEnd{NothingLost: true}, store.ErrGraceChanged},
		} {
			if ended, err := st.EndGrace(t.Context(), tt.end); !errors.Is(err, tt.want) || ended != (store.GraceEnded{}) {
				t.Errorf("%s: EndGrace: got %+v, %v, want %v", name, ended, err, tt.want)
			}
		}
		a.Wait("key", "b")
		if got := theGrace(t, st); got.Waiting != 1 {
			t.Errorf("Graces: got %+v, want that it goes on", got)
		}
		endGrace(t, st)
		if ended, err := st.EndGrace(t.Context(), store.GraceEnd{History: g.History, Before: g.Before}); err != nil || ended.Ended != 0 {
			t.Errorf("EndGrace again: got %+v, %v, want nothing", ended, err)
		}
	})
}

// An end does not reach further back than to the history before. That may have had a grace of its own, and keys that nobody
// has used under it may lack what was lost before it.
func TestAnEndIsThatOfTheLastLoss(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		a.Hold("key", "a")
		promote()
		first := a.Wait("key", "b").Grace
		between := strings.Repeat("2", 40)
		sv.became(t, bucketOf("key"), between, 0)
		graces, err := st.Graces(t.Context())
		if err != nil || len(graces) != 2 || graces[0].Parts+graces[1].Parts != buckets {
			t.Fatalf("Graces: got %+v, %v, want one for each history before", graces, err)
		}
		ended, err := st.EndGrace(t.Context(), store.GraceEnd{History: graces[0].History, Before: between, NothingLost: true})
		if err != nil || ended.Ended != 1 || ended.Left < first/2 || ended.Left > first {
			t.Errorf("EndGrace: got %+v, %v, want what is left of the first grace, %v", ended, err, first)
		}
		for _, key := range []string{"key", "in another bucket"} {
			if got := a.Wait(key, "b").Grace; got == 0 {
				t.Errorf("%q: want that it is not granted", key)
			}
		}
	})
}

// became makes the epoch of a bucket that of another server, whose clock shows so much more.
func (sv *server) became(t *testing.T, bucket int, history string, ahead time.Duration) {
	t.Helper()
	epoch := sv.epoch(bucket)
	for name, times := range map[string][]int{epoch: {1, 4, 5}, strings.TrimSuffix(epoch, "e") + "g": {2, 3, 6, 7, 8}} {
		fields := strings.Fields(sv.Do(t, "GET", name))
		fields[0] = history
		for _, i := range times {
			if ms := numberOf(fields[i]); ms > 0 {
				fields[i] = strconv.FormatInt(ms+ahead.Milliseconds(), 10)
			}
		}
		sv.Do(t, "SET", name, strings.Join(fields, " "))
	}
}

// A server whose grace was ended gives tokens ahead of its clock. If it is lost, the next one begins above them, although
// its clock is behind, and a waiter there believes none of them.
func TestTokensRiseAfterAnEndAndAnotherLoss(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		a.Hold("held", "a")
		a.Wait("held", "b")
		promote()
		endGrace(t, st)
		const lag = 3 * time.Second
		last := a.Hold("key", "a").Token + lag.Microseconds() // as it looks to the next server
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		sv.became(t, bucketOf("key"), strings.Repeat("2", 40), lag)
		sv.became(t, bucketOf("held"), strings.Repeat("2", 40), lag)
		mark := a.Wait("key", "b").Mark
		for key, mark := range map[string]int64{"key": mark, "held": a.Wait("held", "b").Mark} {
			if mark < last {
				t.Errorf("mark of %q: got %d, want %d at least", key, mark, last)
			}
		}
		sv.graceIsOver(t, bucketOf("key"))
		if got := a.Hold("key", "b").Token; got <= mark {
			t.Errorf("token: got %d, want more than %d", got, mark)
		}
	})
}

// A new primary's clock may be behind by more than the grace. Tokens begin above what the old clock showed, also after an end.
func TestTokensRiseWhenTheNewClockIsFarBehind(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		const lag = 4 * lasts
		last := a.Hold("key", "a").Token + lag.Microseconds() // as it looks to the next server
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))              // its holder died
		epoch := sv.epoch(bucketOf("key"))
		for name, ready := range map[string]int{epoch: 1, strings.TrimSuffix(epoch, "e") + "g": 2} { // it has granted for long
			fields := strings.Fields(sv.Do(t, "GET", name))
			fields[ready] = strconv.FormatInt(sv.clock(t)/1000-2*lag.Milliseconds(), 10)
			sv.Do(t, "SET", name, strings.Join(fields, " "))
		}
		sv.became(t, bucketOf("key"), strings.Repeat("2", 40), lag)
		endGrace(t, st)
		for _, owner := range []string{"b", "c"} {
			got := a.Hold("key", owner).Token
			if got <= last {
				t.Errorf("token: got %d, want more than %d", got, last)
			}
			last = got
			a.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: got})
		}
	})
}

// The grace after a clock was set back keeps tokens in order, and nobody can end it.
func TestTheGraceOfAClockThatWasSetBackGoesOn(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		sv.became(t, 7, sv.fact("master_replid"), 4*lasts)
		g := theGrace(t, st)
		if g.Why != store.GraceClock {
			t.Errorf("got %+v, want a clock that was set back", g)
		}
		q := store.GraceEnd{History: g.History, Before: g.Before, NothingLost: true}
		if ended, err := st.EndGrace(t.Context(), q); !errors.Is(err, store.ErrGraceUnproven) || ended.Ended != 0 {
			t.Errorf("EndGrace: got %+v, %v", ended, err)
		}
		if ended, err := st.endBuckets(t.Context(), found(t, st), true); !errors.Is(err, store.ErrGraceUnproven) || ended.Ended != 0 {
			t.Errorf("the script: got %+v, %v", ended, err)
		}
	})
}

// Parts of the keys that were not used before, or not since causes are written, have the same grace as the others.
func TestPartsThatWereNotUsedHaveTheSameGrace(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, lasts)
	history := sv.fact("master_replid2")
	sv.promoteFrom(t, history)
	sv.Do(t, "DEL", sv.epoch(1), strings.TrimSuffix(sv.epoch(1), "e")+"g") // not used
	sv.Do(t, "DEL", strings.TrimSuffix(sv.epoch(2), "e")+"g")              // not since causes are written
	st := sv.newStore(t, WithFailoverGrace(lasts))                         // longer than this server runs
	s := found(t, st)
	if s.of.history != history || s.of.process == "" || s.grace.Parts != buckets {
		t.Errorf("got %+v, want all parts", s)
	}
	if ended, err := st.endBuckets(t.Context(), s, false); err != nil || ended.Ended != buckets {
		t.Errorf("got %+v, %v, want an end of all parts", ended, err)
	}
}

// graceIsOver lets a grace end by itself, with the tokens that it reserves.
func (sv *server) graceIsOver(t *testing.T, bucket int) {
	t.Helper()
	fields := strings.Fields(sv.Do(t, "GET", sv.epoch(bucket)))
	fields[1] = strconv.FormatInt(sv.clock(t)/1000-1, 10)
	sv.Do(t, "SET", sv.epoch(bucket), strings.Join(fields, " "))
}

// A new period begins when the grace is over by itself: not before, or a shorter TTL would make another grace of it.
func TestANewPeriodUndoesNoEnd(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		epoch := sv.epoch(bucketOf("key"))
		fields := strings.Fields(sv.Do(t, "GET", epoch))
		fields[3] = strconv.FormatInt(10*lasts.Milliseconds(), 10) // the longest TTL of the period before
		sv.Do(t, "SET", epoch, strings.Join(fields, " "))
		promote()
		endGrace(t, st)
		fields = strings.Fields(sv.Do(t, "GET", epoch))
		fields[4] = strconv.FormatInt(sv.clock(t)/1000-1, 10) // the period is over
		sv.Do(t, "SET", epoch, strings.Join(fields, " "))
		for _, owner := range []string{"a", "b"} {
			a.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: a.Hold("key", owner).Token})
		}
	})
}

// Nobody can end the grace of a history that a client of an older release was the first to notice.
func TestAnUnknownGraceGoesOn(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		epoch := strings.Fields(sv.Do(t, "GET", sv.epoch(bucketOf("key"))))
		epoch[1] = strconv.FormatInt(sv.clock(t)/1000+lasts.Milliseconds()/2, 10) // that is another grace than that of the cause
		sv.Do(t, "SET", sv.epoch(bucketOf("key")), strings.Join(epoch, " "))
		a.Wait("key", "a")
		g := theGrace(t, st)
		if g.Why != store.GraceUnknown || g.Before != "" || g.Waiting != 1 {
			t.Errorf("Graces: got %+v, want an unknown one", g)
		}
		if ended, err := st.EndGrace(t.Context(), store.GraceEnd{History: g.History, NothingLost: true}); !errors.Is(err, store.ErrGraceUnproven) || ended.Ended != 0 {
			t.Errorf("EndGrace: got %+v, %v", ended, err)
		}
		a.Wait("key", "a")
	})
}

// A replica that says nothing delays nobody for longer than the context.
func TestAMuteReplicaIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	st := ownServer(t).newStore(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	got := st.askReplicas(ctx, []string{listener.Addr().String()})
	if took := time.Since(began); took >= evidencePatience || got[0].err == nil {
		t.Errorf("got %v after %v, want an error when the context has ended", got[0].err, took)
	}
}

// A second grace, after one that somebody has ended, is ended as the first: nothing before it holds it up.
func TestAnEndFollowsAnEnd(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.lasting(t)
		a := join(t, st)
		for _, owner := range []string{"first", "second"} {
			promote()
			if ended := endGrace(t, st); ended.Ended != buckets || ended.Left != 0 {
				t.Errorf("%s end: got %+v, want all at once", owner, ended)
			}
			a.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: a.Hold("key", owner).Token})
		}
	})
}

// To end a grace takes a right of its own, and is otherwise denied before anything changes.
func TestAnEndTakesARightOfItsOwn(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, lasts)
	sv.promote(t)
	for _, tt := range []struct {
		user, rights string
		want         error
	}{
		{"locker", documentedRights, store.ErrDenied},
		{"operator", documentedRights + rightsToList, nil},
	} {
		user := tt.user
		st := sv.as(t, user, tt.rights).newStore(t)
		_, err := st.EndGrace(t.Context(), store.GraceEnd{History: sv.fact("master_replid"), Before: strings.Repeat("1", 40), NothingLost: true})
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: EndGrace: got %v, want %v", user, err, tt.want)
		}
		if graces, err := st.Graces(t.Context()); err != nil || (len(graces) == 0) != (tt.want == nil) {
			t.Errorf("%s: Graces: got %+v, %v", user, graces, err)
		}
	}
}

// Stores that have no grace say so.
func TestNoGraceToEnd(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	for name, tt := range map[string]struct {
		st   *Store
		want error
	}{
		"switched off":       {sv.newStore(t, WithoutFailoverGrace()), store.ErrUnsupported},
		"the server is mute": {sv.newStore(t), store.ErrDenied},
		"nobody made it":     {new(Store), store.ErrInvalidOption},
	} {
		if _, err := tt.st.Graces(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("%s: Graces: got %v, want %v", name, err, tt.want)
		}
		if _, err := tt.st.EndGrace(t.Context(), store.GraceEnd{History: "a", NothingLost: true}); !errors.Is(err, tt.want) {
			t.Errorf("%s: EndGrace: got %v, want %v", name, err, tt.want)
		}
	}
}
