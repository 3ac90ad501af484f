// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

// The stories that follow are about leases that must not last too long, and
// keys that must not be free too soon.

func TestMaxHoldEndsTheLeaseOnTime(t *testing.T) {
	for _, bound := range []time.Duration{asynclock.MinTTL, ttl / 3, ttl, 3*ttl + ttl/7, 100 * ttl} {
		scene(t, bound.String(), func(w *world) {
			l := lock(w, w.client(), "key", asynclock.WithMaxHold(bound))
			held := time.Now()
			<-l.Done()
			wantTime(w, "end", time.Now(), held.Add(bound))
			wantTime(w, "deadline", l.Deadline(), held.Add(bound))
			wantLost(w, l, asynclock.ErrMaxHold)
		})
	}
}

// The bound is each lease's own, also when the key passes inside the client or
// was granted by a message.
func TestMaxHoldCountsFromEachClaim(t *testing.T) {
	const bound = 10 * time.Second
	for _, c := range []struct {
		name string
		from func(w *world, here, there *asynclock.Client) *asynclock.Client
	}{
		{"passed on in the client", func(_ *world, here, _ *asynclock.Client) *asynclock.Client { return here }},
		{"granted by a message", func(_ *world, _, there *asynclock.Client) *asynclock.Client { return there }},
	} {
		scene(t, c.name, func(w *world) {
			here, there := w.client(), w.client()
			l := lock(w, here, "key", asynclock.WithMaxHold(bound))
			p := w.ask(w.Context(), c.from(w, here, there), "key", asynclock.WithMaxHold(bound))
			w.pass(bound * 9 / 10)
			unlock(w, l)
			next := p.has()
			held := time.Now()
			<-next.Done()
			wantTime(w, "end", time.Now(), held.Add(bound))
			wantLost(w, next, asynclock.ErrMaxHold)
		})
	}
}

// After Unlock, which returns at once, nobody has the key until the time since
// its claim has passed, and then the next one has it.
func TestMinHoldKeepsTheKeyFromEveryone(t *testing.T) {
	for _, least := range []time.Duration{time.Second, ttl - time.Second, time.Hour} {
		for _, whose := range []string{"local", "remote"} {
			scene(t, whose+" for "+least.String(), func(w *world) {
				here, there := w.client(asynclock.WithMinHold(least)), w.client(asynclock.WithMinHold(least))
				l := lock(w, here, "key")
				free := time.Now().Add(least)
				w.pass(time.Millisecond)
				from := here
				if whose == "remote" {
					from = there
				}
				p := w.ask(w.Context(), from, "key")
				before := time.Now()
				unlock(w, l)
				wantTime(w, "return of Unlock", time.Now(), before)
				p.waits()
				wantError(w, l.Err(), asynclock.ErrUnlocked)
				wantError(w, errOf(there.TryLock(w.Context(), "key")), asynclock.ErrHeld)
				p.get()
				if late := p.at.Sub(free); late < 0 || late > 50*time.Millisecond {
					w.Errorf("the key came %v after its time, want at most 50ms", late)
				}
			})
		}
	}
}

func TestMinHoldIsForTheWholeOfAJoinedHolding(t *testing.T) {
	story(t, func(w *world) {
		here, there := w.client(asynclock.WithMinHold(time.Minute), asynclock.WithReentry(true)), w.client()
		l := lock(w, here, "key")
		free := time.Now().Add(time.Minute)
		joined, err := here.Lock(l.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		p := w.ask(w.Context(), there, "key")
		unlock(w, l)
		w.pass(10 * time.Second)
		unlock(w, joined)
		p.get()
		if late := p.at.Sub(free); late < 0 || late > 5*time.Millisecond {
			w.Errorf("the key came %v after its time, want at most 5ms", late)
		}
	})
}

// A release that has to be repeated does not begin the minimum hold anew.
func TestRepeatedReleaseKeepsTheKeyNoLongerThanTheFirst(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		l := lock(w, c, "key", asynclock.WithMinHold(10*time.Second))
		w.store.Next(asynclocktest.Release.Any, asynclocktest.Refuse, asynclocktest.Refuse, asynclocktest.Refuse)
		l.UnlockChan(w.Context())
		began := time.Now()
		got := lock(w, other, "key")
		if waited := since(began); waited > 10*time.Second+50*time.Millisecond {
			w.Errorf("the next had the key after %v, want it some 10s after the claim", waited)
		}
		unlock(w, got)
	})
}

// firsts says of each release of "key" whether it called itself the first.
func firsts(st *asynclocktest.Store) (first []bool) {
	for _, c := range st.Calls(asynclocktest.Release.On("key")) {
		first = append(first, c.Release.Clean)
	}
	return first
}

// A store may conclude from First that nobody else can have been granted the key.
func TestOnlyAReleaseThatNothingMayOvertakeIsTheFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*asynclocktest.Store, *asynclock.Lease)
		want   []bool
	}{
		"plain": {func(*asynclocktest.Store, *asynclock.Lease) {}, []bool{true}},
		"repeated": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			s.Next(asynclocktest.Release.Any, asynclocktest.LoseReply)
		}, []bool{true, false}},
		"renewed": {func(*asynclocktest.Store, *asynclock.Lease) { time.Sleep(ttl) }, []bool{true}},
		"a renewal is under way": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			arrived := make(chan struct{})
			s.Next(asynclocktest.Renew.Any, func(ctx context.Context, carry func()) error {
				carry()
				close(arrived)
				<-ctx.Done()
				return ctx.Err()
			})
			<-arrived
		}, []bool{false}},
		"a renewal had no answer": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			s.Next(asynclocktest.Renew.Any, asynclocktest.LoseReply)
			time.Sleep(ttl)
		}, []bool{false}},
		"a renewal did not arrive": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			s.Next(asynclocktest.Renew.Any, asynclocktest.Refuse)
			time.Sleep(ttl)
		}, []bool{true}},
		"the holder's own renewal had no answer": {func(s *asynclocktest.Store, l *asynclock.Lease) {
			s.Next(asynclocktest.Renew.Any, asynclocktest.LoseReply)
			_ = l.Renew(context.Background(), ttl)
		}, []bool{false}},
	} {
		scene(t, name, func(w *world) {
			l := lock(w, w.client(), "key")
			tt.before(w.store, l)
			unlock(w, l)
			if got := firsts(w.store); !slices.Equal(got, tt.want) {
				w.Errorf("First of the releases: got %v, want %v", got, tt.want)
			}
		})
	}
}

// An owner that never held the key, or was granted it again meanwhile, has no first release.
func TestAWithdrawalIsNotTheFirstRelease(t *testing.T) {
	story(t, func(w *world) {
		lock(w, w.client(), "key")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if _, err := w.client().Lock(ctx, "key"); err == nil {
			w.Fatal("got a key that is held")
		}
		w.wait()
		if got := firsts(w.store); !slices.Equal(got, []bool{false}) {
			w.Errorf("First of the releases: got %v, want [false]", got)
		}
	})
}

// A retained key's renewal comes late, to a server that had forgotten the holding and
// writes it anew, and its answer is the first thing that the client reads when it goes
// on after the trust deadline. Somebody else may have had the key.
func TestAReleaseThatComesTooLateIsNotTheFirst(t *testing.T) {
	story(t, func(w *world) {
		c, b := w.braked(asynclock.WithRetention(bound))
		l := lock(w, c, "key")
		deadline := l.Deadline()
		unlock(w, l)
		arrived, answered := make(chan struct{}), make(chan struct{})
		w.store.Next(asynclocktest.Renew.On("key"), func(_ context.Context, carry func()) error {
			close(arrived)
			<-answered
			carry()
			return nil
		})
		<-arrived
		goOn := b.pull(w)
		w.pass(time.Until(deadline) + time.Second)
		close(answered)
		w.wait()
		goOn()
		w.wait()
		if got := firsts(w.store); len(got) == 0 || slices.Contains(got, true) {
			w.Errorf("First of the releases after the deadline: got %v, want some, and all false", got)
		}
	})
}

// A store that lost its way may still read the first batch when the release is repeated.
func TestRepeatedReleaseHasABatchOfItsOwn(t *testing.T) {
	story(t, func(w *world) {
		var batches, copies [][]store.ReleaseRequest
		st := altered{Store: w.store, release: func(_ context.Context, batch []store.ReleaseRequest) error {
			batches, copies = append(batches, batch), append(copies, slices.Clone(batch))
			if len(batches) == 1 {
				return asynclock.ErrOutcomeUnknown
			}
			return nil
		}}
		unlock(w, lock(w, w.clientOf(st), "key", asynclock.WithMinHold(10*time.Second)))
		if len(batches) != 2 || !copies[0][0].Clean || copies[1][0].Clean || copies[0][0].HoldBack == copies[1][0].HoldBack {
			w.Fatalf("got releases %+v, want two that differ", copies)
		}
		if !reflect.DeepEqual(batches, copies) {
			w.Errorf("the batches became %+v, want them left as %+v", batches, copies)
		}
	})
}
