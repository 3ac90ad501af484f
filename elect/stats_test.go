// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store"
)

// wantCounts checks the counts, and that each term is in one of them. A store takes part of a millisecond.
func (w *world) wantCounts(s *elect.Stats, want elect.Counts) {
	w.Helper()
	synctest.Wait()
	got := s.Counts()
	got.Led = got.Led.Truncate(time.Millisecond)
	if got != want {
		w.Errorf("counts:\ngot  %+v\nwant %+v", got, want)
	}
	if n := got.Resigned + got.Lost + got.Leading; n != got.Terms {
		w.Errorf("ends of terms and terms now: got %d in %+v, want the terms, %d", n, got, got.Terms)
	}
}

// lasts is how long the terms of these tests last.
const lasts = 3 * time.Second

func TestEachTermCountsForWhatItCameTo(t *testing.T) {
	resigned, lost := elect.Counts{Terms: 1, Resigned: 1, Led: lasts}, elect.Counts{Terms: 1, Lost: 1, Led: lasts}
	for name, tt := range map[string]struct {
		end  func(w *world, c *asynclock.Client, term *elect.Term) error // is called after lasts
		want elect.Counts
	}{
		"the function returns": {func(*world, *asynclock.Client, *elect.Term) error { return elect.ErrResign }, resigned},
		"the function fails":   {func(*world, *asynclock.Client, *elect.Term) error { return errors.New("no disk") }, resigned},
		"the function panics":  {func(*world, *asynclock.Client, *elect.Term) error { panic("no disk") }, resigned},
		"it is resigned twice": {func(w *world, _ *asynclock.Client, term *elect.Term) error {
			w.wantError(term.Resign(w.Context()))
			w.wantError(term.Resign(w.Context()))
			return elect.ErrResign
		}, resigned},
		"it is unlocked before the function returns": {func(w *world, _ *asynclock.Client, term *elect.Term) error {
			w.wantError(term.Unlock(w.Context()))
			time.Sleep(time.Second)
			return elect.ErrResign
		}, resigned},
		"its client is closed": {func(w *world, c *asynclock.Client, _ *elect.Term) error {
			ctx, cancel := context.WithTimeout(w.Context(), time.Microsecond)
			defer cancel()
			_ = c.Close(ctx)
			time.Sleep(time.Second)
			return elect.ErrResign
		}, resigned},
		"another takes the key": {func(w *world, _ *asynclock.Client, term *elect.Term) error {
			_, err := w.client().ForceUnlock(w.Context(), key, term.Token())
			w.wantError(err)
			<-term.Done()
			return elect.ErrResign
		}, lost},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				var s elect.Stats
				c := w.client()
				func() {
					defer func() { _ = recover() }()
					_ = elect.Run(w.Context(), c, key, func(_ context.Context, term *elect.Term) error {
						time.Sleep(lasts)
						return tt.end(w, c, term)
					}, elect.WithStats(&s))
				}()
				w.wantCounts(&s, tt.want)
			})
		})
	}
}

// The network of a leader fails. It leads until its lease ends by its own clock.
func TestATermThatAnOutageEndsCountsAsLost(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		r := w.run(w.client(), elect.WithStats(&s))
		term := r.leads()
		begin := time.Now()
		w.store.Every(nil, asynclocktest.Refuse)
		<-term.Done()
		led := time.Since(begin).Truncate(time.Millisecond)
		w.wantCounts(&s, elect.Counts{Terms: 1, Lost: 1, Led: led})
		w.pass(time.Minute)
		w.wantCounts(&s, elect.Counts{Terms: 1, Lost: 1, Led: led})
	})
}

// Candidates share a Stats. Their times add up, also while they last.
func TestTermsCountWhileTheyLast(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		first := w.run(w.client(), elect.WithStats(&s))
		w.pass(lasts)
		w.wantCounts(&s, elect.Counts{Terms: 1, Leading: 1, Led: lasts})
		second := w.claim(elect.Campaign(w.Context(), w.client(), "another", elect.WithStats(&s)))
		w.run(w.client(), elect.WithStats(&s)) // waits, and does not lead
		w.pass(lasts)
		w.wantCounts(&s, elect.Counts{Terms: 2, Leading: 2, Led: 3 * lasts})
		first.ends <- elect.ErrResign
		w.wantCounts(&s, elect.Counts{Terms: 3, Leading: 2, Resigned: 1, Led: 3 * lasts})
		w.wantError(second.Resign(w.Context()))
		w.pass(lasts)
		w.wantCounts(&s, elect.Counts{Terms: 4, Leading: 2, Resigned: 2, Led: 5 * lasts})
	})
}

// A term that nobody receives is one. A key without a note is none.
func TestWhichTermsCount(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		ctx, cancel := context.WithCancel(w.Context())
		elect.Campaign(ctx, w.client(), key, elect.WithStats(&s))
		w.pass(lasts)
		cancel()
		w.wantCounts(&s, elect.Counts{Terms: 1, Resigned: 1, Led: lasts})
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Fail(asynclock.ErrDenied))
		r := w.run(w.client(), elect.WithStats(&s))
		w.wantError(r.over(), asynclock.ErrDenied)
		w.wantCounts(&s, elect.Counts{Terms: 1, Resigned: 1, Led: lasts})
	})
}

func TestAnObserverCountsWhatItSees(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		ctx, cancel := context.WithCancel(w.Context())
		w.observe(ctx, w.client(), elect.WithStats(&s))
		w.wantCounts(&s, elect.Counts{})
		w.pass(10 * time.Second)
		w.wantCounts(&s, elect.Counts{Leaderless: 10 * time.Second, LeaderlessNow: 10 * time.Second})
		a := w.run(w.client(), elect.WithValue([]byte("a")))
		w.pass(time.Hour)
		a.proclaim("more")
		w.wantCounts(&s, elect.Counts{Leaderless: 10 * time.Second})
		a.ends <- nil
		a.leads() // again
		w.wantCounts(&s, elect.Counts{Leaderless: 10 * time.Second, Changes: 1})
		a.ends <- elect.ErrResign
		w.pass(time.Second)
		w.wantCounts(&s, elect.Counts{Leaderless: 11 * time.Second, LeaderlessNow: time.Second, Changes: 1})
		b := w.run(w.client())
		w.wantCounts(&s, elect.Counts{Leaderless: 11 * time.Second, Changes: 2})
		b.ends <- elect.ErrResign
		w.pass(time.Second)
		cancel()
		w.wantCounts(&s, elect.Counts{Leaderless: 12 * time.Second, Changes: 2})
		w.run(w.client())
		w.pass(time.Hour)
		w.wantCounts(&s, elect.Counts{Leaderless: 12 * time.Second, Changes: 2})
	})
}

// A leader that dies leads until its time is over.
func TestTheTimeOfADeadLeaderIsNotLeaderless(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		w.run(w.client())
		leaders := w.watch(w.client(), elect.WithStats(&s))
		l := <-leaders
		w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
		w.pass(time.Until(l.Until))
		w.wantCounts(&s, elect.Counts{})
		w.pass(time.Second)
		least := time.Second - elect.MinInterval // the look before may have been shortly before
		if got := s.Counts(); got.Leaderless < least || got.Leaderless > time.Second || got.LeaderlessNow != got.Leaderless {
			w.Errorf("counts a second later: got %+v, want %v to a second without a leader", got, least)
		}
	})
}

// An observer looks this often here, so that it learns of an outage at once.
var soon = elect.WithInterval(elect.MinInterval)

// Somebody may lead whom a silent store does not show. That is not the time without a leader.
func TestTheTimeOfASilentStoreIsUnknown(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		stop := w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		w.watch(w.client(), elect.WithStats(&s), soon)
		w.pass(10 * time.Second)
		w.wantCounts(&s, elect.Counts{Unknown: 10 * time.Second}) // it never knew anything
		stop()
		w.pass(elect.MinInterval)
		first := s.Counts()
		w.pass(time.Minute)
		got := s.Counts()
		if got.Unknown != first.Unknown || got.Leaderless < time.Minute {
			w.Errorf("counts behind an outage: got %+v, want a minute without a leader and no more unknown than %v", got, first.Unknown)
		}
		w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		w.pass(elect.MinInterval)
		before := s.Counts()
		w.pass(time.Minute)
		before.Unknown += time.Minute
		w.wantCounts(&s, before)
	})
}

// Until says how long the last leader is good for in an outage. Then nobody may lead, or the same one.
func TestTheLastLeaderOfAnOutageCountsUntilItsTimeIsOver(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		w.run(w.client(), elect.WithLockOptions(asynclock.WithTTL(time.Minute)))
		leaders := w.watch(w.client(), elect.WithStats(&s), soon)
		l := <-leaders
		stop := w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		w.store.EveryEvent(asynclocktest.Kind(store.EventAnnounced), asynclocktest.Drop)
		w.pass(time.Until(l.Until))
		w.wantCounts(&s, elect.Counts{})
		w.pass(10 * time.Second)
		w.wantCounts(&s, elect.Counts{Unknown: 10 * time.Second})
		stop()
		w.pass(elect.MinInterval)
		known := s.Counts()
		w.pass(time.Minute)
		w.wantCounts(&s, elect.Counts{Unknown: known.Unknown})
	})
}

// An observer believes no smaller number at first. So it does not know who leads.
func TestTermsThatWentBackCountOnce(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		leaders := w.watch(w.client(), elect.WithStats(&s))
		w.wantSeen(leaders, 0, "")
		r := w.run(w.client())
		token := r.leads().Token()
		w.wantSeen(leaders, token, "")
		w.announced(0, store.Announcement{Token: token + 1000, Seq: 1, Remaining: time.Second})
		w.wantCounts(&s, elect.Counts{Changes: 1})
		w.pass(time.Second + net + 2*time.Second)
		got := s.Counts()
		if got.Changes != 2 || got.WentBack != 1 || got.Unknown < net-time.Second || got.Unknown > net+2*time.Second || got.Leaderless != 0 {
			w.Errorf("counts: got %+v, want one way back after about %v unknown", got, net)
		}
		r.proclaim("b")
		w.pass(time.Hour)
		w.wantCounts(&s, got)
	})
}

// Nothing goes on with an observer that never was.
func TestAnObserverThatIsRefusedCountsNothing(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Fail(asynclock.ErrDenied))
		_, err := elect.Observe(w.Context(), w.client(), key, elect.WithStats(&s))
		w.wantError(err, asynclock.ErrDenied)
		w.pass(time.Minute)
		w.wantCounts(&s, elect.Counts{})
	})
}

// Of several observers the one that has seen nobody for longest says since when.
func TestTimesOfObserversAddUp(t *testing.T) {
	story(t, func(w *world) {
		var s elect.Stats
		w.watch(w.client(), elect.WithStats(&s))
		w.pass(time.Second)
		w.watch(w.client(), elect.WithStats(&s))
		w.pass(time.Second)
		w.wantCounts(&s, elect.Counts{Leaderless: 3 * time.Second, LeaderlessNow: 2 * time.Second})
	})
}

func TestANilStats(t *testing.T) {
	story(t, func(w *world) {
		_, err := elect.Observe(w.Context(), w.client(), key, elect.WithStats(nil))
		w.wantError(err, asynclock.ErrInvalidOption)
		w.wantError(w.run(w.client(), elect.WithStats(nil)).over(), asynclock.ErrInvalidOption)
		w.wantCounts(nil, elect.Counts{})
	})
}

// The names are part of the API: dashboards have them.
func TestCountsAsJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(elect.Counts{Terms: 1, Led: time.Second})
	want := `{"terms":1,"resigned":0,"lost":0,"leading":0,"led_ns":1000000000,` +
		`"changes":0,"went_back":0,"leaderless_ns":0,"leaderless_now_ns":0,"unknown_ns":0}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, error %v; want %s", got, err, want)
	}
}
