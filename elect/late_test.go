// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store"
)

// A coarse store counts in whole milliseconds, as Redis does: the last part of a TTL is 0.
type coarse struct{ store.Store }

func (s coarse) Open(id string, events func(store.Event)) (store.Session, error) {
	session, err := s.Store.Open(id, events)
	if err != nil {
		return nil, err
	}
	return coarseSession{session.(store.ObserveSession)}, nil //nolint:forcetypeassert // it is one
}

type coarseSession struct{ store.ObserveSession }

func (s coarseSession) ReadNote(ctx context.Context, key string) (store.Note, error) {
	n, err := s.ObserveSession.ReadNote(ctx, key)
	n.Remaining = max(n.Remaining-time.Nanosecond, 0).Truncate(time.Millisecond)
	return n, err
}

// The look at the end of a leader's time may find the rest of a millisecond.
func TestAnObserverLooksAgainWhenTheTimeOfALeaderIsAlmostOver(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client())
		r.leads()
		leaders := w.watch(w.clientOf(coarse{w.store}))
		l := w.wantSeen(leaders, r.leads().Token(), "")
		w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
		w.pass(time.Until(l.Until) + 2*elect.MinInterval)
		w.wantSeen(leaders, 0, "")
	})
}

// A server that was promoted shows the leader of before until its key has expired there. That is no loss of tokens.
func TestTheLastMomentOfTheLeaderOfBeforeIsNoWayBack(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client(), elect.WithLockOptions(asynclock.WithTTL(time.Minute)))
		token := r.leads().Token()
		leaders := w.watch(w.clientOf(coarse{w.store}))
		w.wantSeen(leaders, token, "")
		w.announced(1, store.Announcement{Token: token + 1000, Seq: 1, Remaining: time.Second})
		w.wantSeen(leaders, token+1000, "")
		w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
		w.pass(time.Minute - time.Millisecond/2)
		w.wantNothing(leaders)
		w.pass(2 * time.Second)
		w.wantSeen(leaders, 0, "")
	})
}

// A smaller term counts when its time has come, not at the look after that.
func TestTokensThatWentBackAreSeenAsSoonAsTheyCount(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		token := w.run(w.client()).leads().Token()
		w.wantSeen(leaders, token, "")
		w.announced(0, store.Announcement{Token: token + 1000, Seq: 1, Remaining: time.Second})
		w.wantSeen(leaders, token+1000, "")
		w.pass(time.Second + net + 2*time.Second)
		if l := w.wantSeen(leaders, token, ""); !l.WentBack {
			w.Error("got no word about it, want WentBack")
		}
	})
}

// A leader may announce a term in the last moment of its TTL.
func TestATermThatWasAnnouncedInItsLastMomentIsLookedFor(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second)
		w.announced(0, store.Announcement{Token: 5, Seq: 1})
		w.wantSeen(leaders, 5, "")
		w.pass(10 * time.Millisecond)
		w.wantSeen(leaders, 0, "")
	})
}

// The regular look comes later than the end of a short TTL.
func TestATermThatWasAnnouncedIsLookedForWhenItsTimeRunsOut(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second)
		r := w.run(w.client(), elect.WithLockOptions(asynclock.WithTTL(3*time.Second)))
		l := w.wantSeen(leaders, r.leads().Token(), "")
		w.store.Every(asynclocktest.Match(nil).From(1), asynclocktest.Hang)
		w.pass(time.Until(l.Until))
		w.wantSeen(leaders, 0, "")
	})
}

// Announcements whose time is over at once make no more looks than others.
func TestShortTermsMakeNoFloodOfLooks(t *testing.T) {
	story(t, func(w *world) {
		w.watch(w.client())
		w.pass(time.Second)
		before := w.looks()
		for i := range 1000 {
			w.announced(0, store.Announcement{Token: int64(1e6 + i), Seq: 1})
			w.pass(time.Millisecond)
		}
		if n := w.looks() - before; n < 1 || n > 11 {
			w.Errorf("looks in a second of messages: got %d, want 1 to 11", n)
		}
	})
}

// A wrong end of a term counts for a TTL of that term, not for one of the term before.
func TestAWrongEndHidesATermNoLongerThanItsOwnTime(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.store.Every(asynclocktest.ReadNote.Any, asynclocktest.Refuse)
		w.announced(0, store.Announcement{Token: 5, Seq: 1, Remaining: time.Hour})
		w.wantSeen(leaders, 5, "")
		w.announced(0, store.Announcement{Token: 6, Ended: true})
		w.pass(net + time.Second)
		w.announced(0, store.Announcement{Token: 6, Seq: 1, Remaining: ttl})
		w.wantSeen(leaders, 6, "")
	})
}
