// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// LockAll never holds a key while it waits for a smaller one. Those after it are given back.
func TestLockAllWaitsHoldingOnlySmallerKeys(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		b := lock(w, theirs, "b")
		p := w.askAll(w.Context(), ours, []string{"c", "b", "a"})
		p.waits()
		w.wantHeld("a", "b")
		c := lock(w, theirs, "c") // which was given back
		unlock(w, b)
		p.waits()
		w.wantHeld("a", "b", "c")
		unlock(w, c)
		m := p.has()
		if got := m.Keys(); !slices.Equal(got, []string{"a", "b", "c"}) || m.Err() != nil {
			w.Errorf("got keys %q, error %v", got, m.Err())
		}
		unlockAll(w, m)
		w.wantUnused()
	})
}

// After two tries that were refused, each key is waited for in turn, and those behind it are not
// tried.
func TestLockAllTriesTwiceAtMost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		a, b, c := lock(w, theirs, "a"), lock(w, theirs, "b"), lock(w, theirs, "c")
		p := w.askAll(w.Context(), ours, []string{"a", "b", "c", "d"})
		for _, l := range []*asynclock.Lease{a, b, c} {
			p.waits()
			unlock(w, l)
		}
		m := p.has()
		tries := make(map[string]int)
		for _, call := range w.store.Calls(nil) {
			if call.Client == 0 && call.Acquire.Key != "" && !call.Acquire.Wait {
				tries[call.Key]++
			}
		}
		if tries["a"] != 1 || tries["b"] != 2 || tries["c"] != 2 || tries["d"] != 2 {
			w.Errorf("tries: got %v, want one of a, and two of the others", tries)
		}
		unlockAll(w, m)
		w.wantUnused()
	})
}

// Keys that are held early are renewed while the others are waited for.
func TestLockAllRenewsWhatItHoldsWhileItWaits(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		b := lock(w, theirs, "b")
		p := w.askAll(w.Context(), ours, []string{"a", "b"}, asynclock.WithMaxHold(ttl))
		token := w.inspect("a").Token
		w.pass(10 * ttl)
		if got := w.inspect("a"); !got.Held || got.Token != token {
			w.Errorf("the early key: got %+v, want it held with token %d", got, token)
		}
		unlock(w, b)
		m := p.has()
		if m.Token("a") != token {
			w.Errorf("token: got %d, want %d", m.Token("a"), token)
		}
		// The maximum hold of all parts counts from the return.
		<-m.Done()
		wantError(w, m.Err(), asynclock.ErrMaxHold)
		wantTime(w, "end", time.Now(), p.at.Add(ttl))
	})
}

// The end of the waiting leaves nothing, whichever bounds it.
func TestLockAllThatEndsHoldsNothing(t *testing.T) {
	why := errors.New("why")
	for _, c := range []struct {
		name    string
		end     func(w *world, ours *asynclock.Client, cancel context.CancelCauseFunc)
		options []asynclock.LockOption
		want    []error
	}{
		{
			"its context ends", func(_ *world, _ *asynclock.Client, cancel context.CancelCauseFunc) { cancel(why) }, nil,
			[]error{context.Canceled, why, asynclock.ErrHeld},
		},
		{
			"its time is over", func(w *world, _ *asynclock.Client, _ context.CancelCauseFunc) { w.pass(time.Minute) },
			[]asynclock.LockOption{asynclock.WithWait(time.Minute)},
			[]error{context.DeadlineExceeded, asynclock.ErrHeld},
		},
		{"the client closes", func(w *world, ours *asynclock.Client, _ context.CancelCauseFunc) {
			w.close(ours)
		}, nil, []error{asynclock.ErrClosed}},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs := w.bounded(), w.bounded()
			lock(w, theirs, "b")
			ctx, cancel := context.WithCancelCause(w.Context())
			defer cancel(nil)
			p := w.askAll(ctx, ours, []string{"a", "b", "c"}, c.options...)
			p.waits()
			c.end(w, ours, cancel)
			err := p.ended()
			wantError(w, err, c.want...)
			wantOp(w, err, "lock all", "b")
			w.wantHeld("b")
			if got := w.inspect("b").Waiters; got != 0 {
				w.Errorf("waiters: got %d, want none", got)
			}
		})
	}
}

// A minimum hold counts from the return, so keys that were had too early are not held back.
func TestLockAllHoldsNothingBackThatItGivesBack(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		b := lock(w, theirs, "b")
		keys := []string{"a", "b", "c"}
		wantError(w, errOf(ours.TryLockAll(w.Context(), keys, asynclock.WithMinHold(time.Hour))), asynclock.ErrHeld)
		w.wantHeld("b")
		unlock(w, b)
		start := time.Now()
		unlockAll(w, lockAll(w, ours, keys, asynclock.WithMinHold(time.Hour)))
		w.wantHeld(keys...)
		unlockAll(w, lockAll(w, theirs, keys))
		if got := time.Since(start); got < time.Hour {
			w.Errorf("the keys came back after %v, want the minimum hold", got)
		}
	})
}

// Two callers who name two keys in opposite order, and would each have one of them.
func TestLockAllInOppositeOrder(t *testing.T) {
	story(t, func(w *world) {
		gate := w.bounded()
		a, b := lock(w, gate, "a"), lock(w, gate, "b")
		one := w.askAll(w.Context(), w.bounded(), []string{"a", "b"}, asynclock.WithWait(time.Minute))
		other := w.askAll(w.Context(), w.bounded(), []string{"b", "a"}, asynclock.WithWait(time.Hour))
		unlock(w, b)
		unlock(w, a)
		unlockAll(w, one.has())
		unlockAll(w, other.has())
		w.wantUnused()
	})
}

// Three callers, three pairs of three keys: some order, and each waits no longer than the others
// hold.
func TestLockAllOfPairsInACircle(t *testing.T) {
	stories(t, 20, func(w *world) {
		const hold = time.Second
		pairs := [][]string{{"b", "a"}, {"c", "b"}, {"a", "c"}}
		gate := lockAll(w, w.bounded(), []string{"a", "b", "c"}) // so that each waits for the key that it names first
		start := time.Now()
		var all sync.WaitGroup
		var inside atomic.Int32 // any two pairs have a key in common
		for _, pair := range pairs {
			c := w.bounded()
			all.Go(func() {
				m := lockAll(w, c, pair)
				if got := time.Since(start); got > 2*hold+heartbeat {
					w.Errorf("%q waited for %v, want the two other holds at most", pair, got)
				}
				if n := inside.Add(1); n != 1 {
					w.Errorf("%q is held with %d others that share a key with it", pair, n-1)
				}
				time.Sleep(hold)
				inside.Add(-1)
				unlockAll(w, m)
			})
		}
		w.wait()
		unlockAll(w, gate)
		all.Wait()
		w.wantUnused()
	})
}

// Any number of clients over key sets that overlap: each has its turn, no two hold one key, and
// nobody is stuck. Some share a client, some hold one key only.
func TestLockAllNeverDeadlocks(t *testing.T) {
	for _, clients := range []int{2, 3, 5, 16} {
		t.Run(strconv.Itoa(clients), func(t *testing.T) {
			stories(t, 5, func(w *world) {
				overlap(w, clients, 12)
				w.wait()
				w.wantUnused()
			})
		})
	}
}

// overlap lets two callers of each client take three of eight keys at a time, for so many rounds.
func overlap(w *world, clients, rounds int) {
	keys := numbered(8)
	var mu sync.Mutex
	holders := make(map[string]int)
	count := func(keys []string, n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range keys {
			if holders[key] += n; holders[key] > 1 {
				w.Errorf("%q has %d holders", key, holders[key])
			}
		}
	}
	ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
	defer cancel()
	var all sync.WaitGroup
	for i := range clients {
		c := w.bounded()
		for caller := range 2 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
				for range rounds {
					var mine []string
					for _, n := range random.Perm(len(keys))[:1+random.IntN(3)] {
						mine = append(mine, keys[n])
					}
					m, err := c.LockAll(ctx, mine)
					if err != nil {
						w.Errorf("LockAll of %q: %v", mine, err)
						return
					}
					count(mine, 1)
					time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
					if err := m.Err(); err != nil {
						w.Errorf("the lease of %q: %v", mine, err)
					}
					count(mine, -1)
					m.UnlockChan(ctx)
				}
			})
		}
	}
	all.Wait()
}

// force takes a key from its holder.
func (w *world) force(c *asynclock.Client, key string) {
	w.Helper()
	if held, err := c.ForceUnlock(w.Context(), key, 0); err != nil || !held {
		w.Fatalf("ForceUnlock: got %v, %v, want the key to have been held", held, err)
	}
	w.pass(time.Millisecond) // the holder asks the store
}

// wantPartLost fails the story unless the lease has ended because of this key.
func (w *world) wantPartLost(m *asynclock.MultiLease, key string, causes ...error) {
	w.Helper()
	err := m.Err()
	var part *asynclock.PartError
	if !errors.As(err, &part) || part.Key != key {
		w.Errorf("got error %v, want a PartError of %q", err, key)
	}
	wantError(w, err, causes...)
	if m.Valid(0) {
		w.Error("a lost lease is valid")
	}
	select {
	case <-m.Done():
	default:
		w.Error("a lost lease is not done")
	}
	if got := context.Cause(m.Context()); !errors.Is(got, err) {
		w.Errorf("cause of the context: got %v, want %v", got, err)
	}
}

// The loss of one part ends the whole at once. The others are not renewed any more, and go to nobody
// before their TTL, because the holder may still be at work.
func TestLockAllEndsWithTheFirstPartThatIsLost(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		w.pass(10 * ttl)
		w.force(theirs, "b")
		w.wantPartLost(m, "b", asynclock.ErrForced, asynclock.ErrLost)
		renewals := w.calls(asynclocktest.Renew.Any)
		start := time.Now()
		w.pass(trusted(ttl) / 2)
		w.wantHeld("a", "c")
		for _, key := range []string{"a", "c"} {
			unlock(w, lock(w, theirs, key))
			if got := time.Since(start); got > ttl+heartbeat {
				w.Errorf("%q was free after %v, want at most the TTL", key, got)
			}
		}
		if got := w.calls(asynclocktest.Renew.From(0)) - renewals; got != 0 {
			w.Errorf("renewals after the loss: got %d, want none", got)
		}
		w.wantPartLost(m, "b", asynclock.ErrForced)
		err := m.Unlock(w.Context())
		wantError(w, err, asynclock.ErrForced)
		w.wantUnused()
	})
}

// Unlock of a lease that was lost gives the other keys back at once.
func TestLockAllUnlocksTheOthersAfterALoss(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		w.force(theirs, "b")
		w.wantHeld("a", "c")
		start := time.Now()
		err := m.Unlock(w.Context())
		wantError(w, err, asynclock.ErrForced)
		wantOp(w, err, "unlock all", "b")
		wantTime(w, "answer", time.Now(), start)
		w.wantUnused()
		w.wantPartLost(m, "b", asynclock.ErrForced)
		if again := m.Unlock(w.Context()); again == nil || again.Error() != err.Error() {
			w.Errorf("Unlock once more: got %v, want %v", again, err)
		}
	})
}

// A lease that is not renewed ends at the earliest deadline, even if nobody runs in time.
func TestLockAllEndsAtTheEarliestDeadline(t *testing.T) {
	story(t, func(w *world) {
		theirs, ours := w.bounded(), w.bounded()
		start := time.Now()
		b := w.ask(w.Context(), theirs, "b").has()
		p := w.askAll(w.Context(), ours, []string{"a", "b"}, asynclock.WithRenewal(false))
		w.pass(ttl / 6) // nothing was renewed yet
		unlock(w, b)
		m := p.has()
		wantTime(w, "deadline", m.Deadline(), start.Add(trusted(ttl)))
		if left := time.Until(m.Deadline()); !m.Valid(left-1) || m.Valid(left) {
			w.Errorf("valid for the time left: got %v, %v; want true, false", m.Valid(left-1), m.Valid(left))
		}
		time.Sleep(time.Until(m.Deadline()))
		w.wantPartLost(m, "a", asynclock.ErrExpired)
	})
}

// A key that is lost while others are waited for is taken again, and with it all that sort after it.
// Its old token is never shown.
func TestLockAllTakesALostKeyAgain(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		d := lock(w, theirs, "d")
		p := w.askAll(w.Context(), ours, []string{"a", "b", "c", "d"})
		old := make(map[string]int64)
		for _, key := range []string{"a", "b", "c"} {
			old[key] = w.inspect(key).Token
		}
		w.force(theirs, "b")
		w.wantHeld("a", "b", "c", "d")
		p.waits()
		unlock(w, d)
		m := p.has()
		if got := m.Tokens(); got["a"] != old["a"] || got["b"] <= old["b"] || got["c"] <= old["c"] {
			w.Errorf("tokens: got %v, want new ones from b on, before %v", got, old)
		}
		w.pass(10 * ttl)
		wantError(w, m.Err(), nil)
		unlockAll(w, m)
		w.wantUnused()
	})
}

// If another has the lost key, it is waited for, and no larger key is held meanwhile.
func TestLockAllHoldsNoLargerKeyThanALostOne(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(), w.bounded()
		d := lock(w, theirs, "d")
		p := w.askAll(w.Context(), ours, []string{"a", "b", "c", "d"})
		next := w.ask(w.Context(), theirs, "b")
		w.force(theirs, "b")
		b := next.has()
		w.wantHeld("a", "b", "d")
		if got := w.inspect("d").Waiters; got != 0 {
			w.Errorf("waiters for the last key: got %d, want none", got)
		}
		unlock(w, d)
		p.waits()
		w.wantHeld("a", "b")
		unlock(w, b)
		unlockAll(w, p.has())
		w.wantUnused()
	})
}

// A part that another lease has joined is renewed for that lease.
func TestLockAllRenewsALostPartForThoseWhoJoinedIt(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.bounded(asynclock.WithReentry(true)), w.bounded()
		m := lockAll(w, ours, []string{"a", "b", "c"})
		a, err := ours.Lock(m.Context(), "a")
		if err != nil {
			w.Fatal(err)
		}
		w.force(theirs, "b")
		w.pass(ttl / 2)
		late, err := ours.Lock(context.WithoutCancel(m.Context()), "c") // after the loss
		if err != nil {
			w.Fatal(err)
		}
		w.pass(10 * ttl)
		wantValid(w, a)
		wantValid(w, late)
		wantError(w, m.Unlock(w.Context()), asynclock.ErrForced)
		w.pass(10 * ttl)
		w.wantHeld("a", "c")
		unlock(w, a)
		unlock(w, late)
		w.wantUnused()
	})
}

// A caller keeps the place of its first wait in the queues of the keys that follow, unless it has set a limit of
// the queue, which would not apply to a place.
func TestLockAllKeepsThePlaceOfItsFirstWait(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []asynclock.LockOption
		first   bool
	}{
		{"without a limit of its own", nil, true},
		{"with one", []asynclock.LockOption{asynclock.WithQueueLimit(5)}, false},
	} {
		scene(t, c.name, func(w *world) {
			ours, theirs, late := w.bounded(), w.bounded(), w.bounded()
			a, b := lock(w, theirs, "a"), lock(w, theirs, "b")
			p := w.askAll(w.Context(), ours, []string{"a", "b"}, c.options...)
			p.waits()
			later := w.askAll(w.Context(), late, []string{"b"})
			later.waits()
			unlock(w, a)
			p.waits()
			unlock(w, b)
			next := []*pendingOf[*asynclock.MultiLease]{p, later}
			if !c.first {
				next = []*pendingOf[*asynclock.MultiLease]{later, p}
			}
			next[1].waits()
			unlockAll(w, next[0].has())
			unlockAll(w, next[1].has())
			w.wantUnused()
		})
	}
}
