// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store"
)

const net = asynclock.DefaultTTL // how often an observer looks that is told of changes

// watch observes until the story ends.
func (w *world) watch(c *asynclock.Client, options ...elect.Option) <-chan elect.Leader {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	w.Cleanup(cancel)
	return w.observe(ctx, c, options...)
}

func (w *world) looks() int { return len(w.store.Calls(asynclocktest.ReadNote.Any)) }

// announced sends an announcement that nobody has made to the client with this number.
func (w *world) announced(client int, a store.Announcement) {
	w.store.Tell(client, store.Event{Kind: store.EventAnnounced, Key: key, Announcement: &a})
}

func (r *runner) proclaim(value string) {
	r.w.Helper()
	if err := r.leads().Proclaim(r.w.Context(), []byte(value)); err != nil {
		r.w.Fatal(err)
	}
}

func TestAnObserverIsToldOfEachChangeAtOnce(t *testing.T) {
	story(t, func(w *world) {
		observer, a, b := w.client(), w.client(), w.client()
		leaders := w.watch(observer)
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second) // beyond the look that follows the first event
		looks, start := w.looks(), time.Now()
		first := w.run(a, elect.WithValue([]byte("a")))
		l := w.wantSeen(leaders, first.leads().Token(), "a")
		if left := time.Until(l.Until); left != ttl {
			w.Errorf("the term may end in %v, want %v", left, ttl)
		}
		first.proclaim("more")
		w.wantSeen(leaders, first.leads().Token(), "more")
		second := w.run(b, elect.WithValue([]byte("b")))
		first.ends <- elect.ErrResign
		w.wantSeen(leaders, second.leads().Token(), "b")
		second.ends <- elect.ErrResign
		w.wantSeen(leaders, 0, "")
		if n := w.looks() - looks; n != 0 || time.Since(start) != 0 {
			w.Errorf("got %d looks in %v, want none: all was announced", n, time.Since(start))
		}
	})
}

func TestAnObserverThatIsToldLooksSeldom(t *testing.T) {
	story(t, func(w *world) {
		w.watch(w.client())
		w.pass(time.Second)
		before := w.looks()
		w.pass(100 * net)
		if n := w.looks() - before; n < 95 || n > 130 {
			w.Errorf("looks in %v: got %d, want one in %v or a little less", 100*net, n, net)
		}
		w.store.Tell(0, store.Event{Kind: store.EventUnobserved, Key: key})
		w.pass(time.Second)
		before = w.looks()
		w.pass(100 * interval)
		if n := w.looks() - before; n < 95 || n > 130 {
			w.Errorf("looks in %v without announcements: got %d, want one in %v or a little less", 100*interval, n, interval)
		}
	})
}

func TestAnObserverThatMayHaveMissedSomethingLooksAtOnce(t *testing.T) {
	for _, kind := range []store.EventKind{store.EventObserving, store.EventUnobserved} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			story(t, func(w *world) {
				leaders := w.watch(w.client())
				w.wantSeen(leaders, 0, "")
				w.pass(time.Second)
				w.store.EveryEvent(asynclocktest.Kind(store.EventAnnounced), asynclocktest.Drop)
				r := w.run(w.client(), elect.WithValue([]byte("a")))
				w.wantNothing(leaders)
				w.store.Tell(0, store.Event{Kind: kind, Key: key})
				w.wantSeen(leaders, r.leads().Token(), "a")
			})
		})
	}
}

func TestLostAnnouncementsAreMadeUpForByLooks(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second)
		w.store.EveryEvent(asynclocktest.Kind(store.EventAnnounced), asynclocktest.Drop)
		r := w.run(w.client(), elect.WithValue([]byte("a")))
		w.wantNothing(leaders)
		w.pass(net)
		w.wantSeen(leaders, r.leads().Token(), "a")
		r.proclaim("b")
		w.pass(net)
		w.wantSeen(leaders, r.leads().Token(), "b")
		r.ends <- elect.ErrResign
		w.pass(net)
		w.wantSeen(leaders, 0, "")
	})
}

// The end of a term comes, and its beginning was lost.
func TestAnEndThatFitsNothingMakesAnObserverLook(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		first, second := w.run(w.client()), w.run(w.client())
		w.wantSeen(leaders, first.leads().Token(), "")
		w.pass(time.Second)
		w.store.EveryEvent(asynclocktest.Kind(store.EventAnnounced), asynclocktest.Drop)
		first.ends <- elect.ErrResign
		w.wantNothing(leaders)
		w.announced(0, store.Announcement{Token: second.leads().Token() + 1, Ended: true})
		w.wantSeen(leaders, second.leads().Token(), "")
	})
}

func TestLateAndRepeatedAnnouncementsChangeNothing(t *testing.T) {
	story(t, func(w *world) {
		var late asynclocktest.Mailbox
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.store.EveryEvent(asynclocktest.Kind(store.EventAnnounced).For(0), func(deliver func()) {
			late.Keep(deliver)
			asynclocktest.Repeat(deliver)
		})
		first := w.run(w.client(), elect.WithValue([]byte("a")))
		w.wantSeen(leaders, first.leads().Token(), "a")
		first.proclaim("b")
		w.wantSeen(leaders, first.leads().Token(), "b")
		again := func() {
			w.Helper()
			for i := range late.Len() {
				late.Deliver(i)
				w.wantNothing(leaders)
			}
		}
		again()
		first.ends <- elect.ErrResign
		w.wantSeen(leaders, 0, "")
		again()
		second := w.run(w.client(), elect.WithValue([]byte("c")))
		w.wantSeen(leaders, second.leads().Token(), "c")
		again()
		w.pass(10 * net)
		again()
	})
}

// The end is announced while the store does not know of it: the release is under way, or was lost.
func TestATermThatHasEndedIsNotSeenAgain(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		leaders := w.watch(w.client(), elect.WithInterval(elect.MinInterval))
		r := w.run(c)
		w.pass(time.Second)
		w.wantSeen(leaders, r.leads().Token(), "")
		w.store.Every(asynclocktest.Release.Any, asynclocktest.Refuse)
		r.cancel()
		w.wantSeen(leaders, 0, "")
		for range 200 {
			w.pass(elect.MinInterval)
			w.wantNothing(leaders)
		}
	})
}

// A forged message says that a leader has gone. A look finds it again, when it has been renewed.
func TestATermThatHasNotEndedIsSeenAgain(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		r := w.run(w.client(), elect.WithValue([]byte("a")))
		w.wantSeen(leaders, r.leads().Token(), "a")
		w.announced(0, store.Announcement{Token: r.leads().Token(), Ended: true})
		w.wantSeen(leaders, 0, "")
		w.pass(ttl + net)
		w.wantSeen(leaders, r.leads().Token(), "a")
		w.pass(10 * net)
		w.wantNothing(leaders)
	})
}

// A look has found the key free, or an older value, and its answer comes after a later announcement.
func TestALookThatAnAnnouncementHasOvertakenDoesNotCount(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second)
		slow := func() {
			w.store.Next(asynclocktest.ReadNote.From(1), asynclocktest.Slow(0, time.Second/2))
			w.store.Tell(1, store.Event{Kind: store.EventObserving, Key: key})
			w.pass(time.Millisecond)
		}
		slow()
		r := w.run(c, elect.WithValue([]byte("a")))
		w.wantSeen(leaders, r.leads().Token(), "a")
		w.pass(time.Second)
		w.wantNothing(leaders)
		slow()
		r.proclaim("b")
		w.wantSeen(leaders, r.leads().Token(), "b")
		w.pass(time.Second)
		w.wantNothing(leaders)
		slow()
		r.ends <- elect.ErrResign
		w.wantSeen(leaders, 0, "")
		w.pass(time.Second)
		w.wantNothing(leaders)
	})
}

func TestALeaderThatDiesIsSeenByALook(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		leaders := w.watch(w.client())
		r := w.run(c)
		l := w.wantSeen(leaders, r.leads().Token(), "")
		w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
		w.store.EveryEvent(asynclocktest.Kind(store.EventAnnounced), asynclocktest.Drop)
		w.pass(time.Until(l.Until) + time.Second)
		w.wantSeen(leaders, 0, "")
	})
}

// After a loss of data the tokens of a store may begin anew. The observer gets out of it, and says so.
func TestTokensThatWentBackAreSeenInTheEnd(t *testing.T) {
	story(t, func(w *world) {
		leaders := w.watch(w.client())
		w.wantSeen(leaders, 0, "")
		r := w.run(w.client(), elect.WithLockOptions(asynclock.WithTTL(time.Minute)))
		token := r.leads().Token()
		w.announced(0, store.Announcement{Token: token + 1000, Seq: 1, Remaining: ttl})
		w.wantSeen(leaders, token+1000, "")
		w.pass(ttl / 2)
		w.wantNothing(leaders)
		w.pass(time.Minute + 3*net)
		if l := w.wantSeen(leaders, token, ""); !l.WentBack {
			w.Error("a smaller number than before: got no word about it, want WentBack")
		}
		r.proclaim("b")
		if l := w.wantSeen(leaders, token, "b"); !l.WentBack {
			w.Error("the same term: got no word about it, want WentBack")
		}
		r.ends <- nil
		if l := w.wantSeen(leaders, r.leads().Token(), ""); l.WentBack {
			w.Error("the next term: got WentBack, want none")
		}
		w.pass(10 * time.Minute)
		w.wantNothing(leaders)
	})
}

// A flood of messages makes no flood of looks.
func TestAnObserverLooksNotAfterEachMessage(t *testing.T) {
	story(t, func(w *world) {
		w.watch(w.client())
		w.pass(time.Second)
		before := w.looks()
		for i := range 1000 {
			w.announced(0, store.Announcement{Token: int64(1e6 + i), Ended: true})
			w.pass(time.Millisecond)
		}
		if n := w.looks() - before; n < 1 || n > 11 {
			w.Errorf("looks in a second of messages: got %d, want 1 to 11", n)
		}
	})
}

// An observer in a store that announces nothing looks every two seconds, as ever.
func TestAnObserverOfAStoreWithoutAnnouncements(t *testing.T) {
	story(t, func(w *world) {
		quiet := quietStore{w.store}
		leaders := w.watch(w.clientOf(quiet))
		w.wantSeen(leaders, 0, "")
		r := w.run(w.clientOf(quiet), elect.WithValue([]byte("a")))
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "a")
		r.proclaim("b")
		w.pass(interval)
		w.wantSeen(leaders, r.leads().Token(), "b")
		r.ends <- elect.ErrResign
		w.pass(interval)
		w.wantSeen(leaders, 0, "")
	})
}

type quietStore struct{ store.Store }

func (s quietStore) Features() store.Features {
	f := s.Store.Features()
	f.Announcements = false
	return f
}
