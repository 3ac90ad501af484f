// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestLeaseLastsForAsLongAsItIsRenewed(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		start := time.Now()
		for range 1000 {
			w.pass(ttl / 10)
			wantValid(w, l)
			if left := w.inspect("key").Remaining; left < ttl/2 {
				w.Fatalf("the store has %v of the TTL left, want renewals to keep most of it", left)
			}
		}
		renewals := w.calls(asynclocktest.Renew.On("key"))
		if thirds := int(time.Since(start) / (ttl / 3)); renewals < thirds || renewals > thirds*5/4 {
			w.Errorf("renewed %d times in %d thirds of the TTL, want about once in each", renewals, thirds)
		}
		unlock(w, l)
		w.wantUnused()
	})
}

// Leases taken one by one are renewed together.
func TestRenewalsComeInBatches(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for i := range 100 {
			lock(w, c, fmt.Sprint("key ", i))
			w.pass(ttl / 1000)
		}
		w.pass(ttl)
		moments := make(map[time.Time]int)
		for _, r := range w.store.Calls(asynclocktest.Renew.Any) {
			moments[r.At]++
		}
		if n := len(moments); n == 0 || n > 20 {
			w.Errorf("100 leases were renewed at %d different moments, want a few", n)
		}
	})
}

// A renewal that hangs, and does not even return when its context ends, keeps
// the trust deadline from nothing: the lease ends before the store's TTL.
func TestHungRenewalThatIgnoresItsContextEndsTheLeaseInTime(t *testing.T) {
	story(t, func(w *world) {
		holder, waiter := w.client(), w.client()
		sent := time.Now()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		until := make(chan struct{})
		defer close(until)
		w.store.Every(asynclocktest.Renew.From(0), asynclocktest.Stuck(until, asynclocktest.Refuse))
		<-l.Done()
		ended := time.Now()
		wantTime(w, "end of the lease", ended, sent.Add(trusted(ttl)))
		wantError(w, l.Err(), asynclock.ErrNotRenewed, asynclock.ErrUnreachable, asynclock.ErrOutcomeUnknown)
		wantValid(w, p.get())
		if margin := p.at.Sub(ended); margin < ttl/10 {
			w.Errorf("the next lease began %v after the end of this one, want at least %v", margin, ttl/10)
		}
	})
}

// A part of the store that hangs delays nobody else's renewals.
func TestHungLaneLeavesTheOthersAlone(t *testing.T) {
	story(t, func(w *world) {
		w.store = asynclocktest.Wrap(lanes(memstore.New()))
		c := w.client()
		var near, far []*asynclock.Lease
		for i := range 10 {
			near = append(near, lock(w, c, fmt.Sprint("near ", i)))
			far = append(far, lock(w, c, fmt.Sprint("far ", i)))
		}
		until := make(chan struct{})
		defer close(until)
		isFar := func(c asynclocktest.Call) bool { return strings.HasPrefix(c.Key, "far") }
		w.store.Every(asynclocktest.Match(asynclocktest.Renew.Any).Where(isFar), asynclocktest.Stuck(until, asynclocktest.Refuse))
		w.pass(2 * ttl)
		for i := range near {
			wantValid(w, near[i])
			wantError(w, far[i].Err(), asynclock.ErrNotRenewed)
		}
	})
}

// In a batch each key has its own answer.
func TestFailedRenewalOfOneKeyLeavesTheOthersAlone(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		good, bad := lock(w, c, "good"), lock(w, c, "bad")
		w.store.Every(asynclocktest.Renew.On("bad"), asynclocktest.Refuse)
		w.pass(2 * ttl)
		wantValid(w, good)
		wantError(w, bad.Err(), asynclock.ErrNotRenewed, asynclock.ErrUnreachable)
	})
}

// Calls that may take long, because their TTL is long, do not hold up those that
// have to be quick.
func TestShortAndLongTTLsAreRenewedSideBySide(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		const slow = 900 * time.Millisecond
		var leases []*asynclock.Lease
		for i := range 4 {
			key := fmt.Sprint("long ", i)
			leases = append(leases, lock(w, c, key))
			w.store.Every(asynclocktest.Renew.On(key), asynclocktest.Slow(slow/2, slow/2))
			w.pass(slow / 2)
		}
		leases = append(leases, lock(w, c, "short", asynclock.WithTTL(asynclock.MinTTL)))
		w.store.Every(asynclocktest.Renew.On("short"), asynclocktest.Slow(time.Millisecond, time.Millisecond))
		w.pass(4 * ttl)
		for _, l := range leases {
			wantValid(w, l)
		}
	})
}

func TestRenewByHandExtendsTheLease(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithRenewal(false))
		w.pass(ttl / 2)
		if err := l.Renew(w.Context(), time.Hour); err != nil {
			w.Fatal(err)
		}
		wantTime(w, "trust deadline", l.Deadline(), time.Now().Add(trusted(time.Hour)))
		w.pass(trusted(time.Hour) - time.Second)
		wantValid(w, l)
		w.pass(time.Second)
		wantError(w, l.Err(), asynclock.ErrExpired)
	})
}

func TestRenewByHandReportsWhatTheStoreSays(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
		err   error
	}{
		{"unreachable", asynclocktest.Refuse, asynclock.ErrUnreachable},
		{"outcome unknown", asynclocktest.LoseReply, asynclock.ErrOutcomeUnknown},
		{"hanging", asynclocktest.Hang, asynclock.ErrOutcomeUnknown},
		{"denied", asynclocktest.Fail(asynclock.ErrDenied), asynclock.ErrDenied},
	} {
		scene(t, c.name, func(w *world) {
			l := lock(w, w.client(), "key", asynclock.WithRenewal(false))
			before := l.Deadline()
			w.store.Next(asynclocktest.Renew.On("key"), c.fault)
			err := l.Renew(w.Context(), time.Hour)
			wantError(w, err, c.err)
			wantOp(w, err, "renew", "key")
			if errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("got %v, whose context has not ended", err)
			}
			wantValid(w, l)
			wantTime(w, "trust deadline", l.Deadline(), before)
			w.pass(ttl)
			wantError(w, l.Err(), asynclock.ErrExpired) // nobody but the caller has tried to renew
		})
	}
}

func TestRenewByHandEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.store.Next(asynclocktest.Renew.On("key"), asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Millisecond)
		defer cancel()
		wantError(w, l.Renew(ctx, time.Hour), context.DeadlineExceeded)
		wantValid(w, l)
		unlock(w, l)
	})
}

func TestRenewByHandFindsTheLoss(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		w.steal()
		wantValid(w, l) // it can't know
		wantError(w, l.Renew(w.Context(), ttl), asynclock.ErrExpired, asynclock.ErrLost)
		wantError(w, l.Err(), asynclock.ErrExpired)
		wantError(w, l.Renew(w.Context(), ttl), asynclock.ErrExpired)
		w.wantCalls(asynclocktest.Renew.On("key"), 1) // there is nothing to renew after a loss
	})
}

func TestRenewByHandAfterUnlockIsRefused(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		unlock(w, l)
		wantError(w, l.Renew(w.Context(), ttl), asynclock.ErrUnlocked)
		w.wantCalls(asynclocktest.Renew.On("key"), 0)
	})
}

func TestRenewByHandDoesNotPassMaxHold(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key", asynclock.WithMaxHold(time.Minute))
		held := time.Now()
		if err := l.Renew(w.Context(), time.Hour); err != nil {
			w.Fatal(err)
		}
		wantTime(w, "trust deadline", l.Deadline(), held.Add(time.Minute))
		if left := w.inspect("key").Remaining; left > 2*time.Minute {
			w.Errorf("the store keeps the key for %v, want little more than a minute", left)
		}
	})
}

// A store that needs longer than a first attempt may take, but answers, loses no
// lease: attempts become more patient, and do not fill its queue for nothing.
func TestSlowStoreLosesNoLease(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		slow := asynclocktest.Slow(callTimeout*3/4, callTimeout*3/4)
		w.store.Every(asynclocktest.Renew.On("key"), slow)
		w.store.Every(asynclocktest.Release.On("key"), slow)
		w.pass(time.Minute)
		wantValid(w, l)
		unlock(w, l)
		w.wantCalls(asynclocktest.Release.On("key"), 2) // one that is given up, and one that waits
	})
}

// A distant store takes its time for each call that renews, and notes how many
// leases each of them is for.
type distant struct {
	takes time.Duration

	mu       sync.Mutex
	sizes    []int
	times    map[time.Time]bool // at which calls begin
	underWay int
	atOnce   int // calls, at most
}

func (d *distant) renew(ctx context.Context, batch []store.RenewRequest) error {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(batch))
	d.underWay++
	d.atOnce = max(d.atOnce, d.underWay)
	if d.times != nil {
		d.times[time.Now()] = true
	}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.underWay--
		d.mu.Unlock()
	}()
	select {
	case <-time.After(d.takes):
		return nil
	case <-ctx.Done(): // the client closes, or has too many calls under way
		return ctx.Err()
	}
}

// holdKeys has a client of the store hold n keys, "key 0" and on, until the test ends.
func holdKeys(t *testing.T, st store.Store, n int, options ...asynclock.ClientOption) []*asynclock.Lease {
	t.Helper()
	c, err := asynclock.New(st, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abandon(c) })
	leases := make([]*asynclock.Lease, n)
	for i := range leases {
		leases[i] = lock(t, c, fmt.Sprint("key ", i))
	}
	return leases
}

// wantAll fails the test unless each of the leases lasts.
func wantAll(t *testing.T, leases []*asynclock.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := l.Err(); err != nil {
			t.Fatalf("got %v, want every lease to last", err)
		}
	}
}

// A round of renewals of many leases leaves room for locks between its calls, in
// commands that are not too many either, and not at the price of leases.
func TestRenewalsAreGentleUnlessTheyAreLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes    time.Duration
		smallest int // call in a round
		largest  int
	}{
		"near":    {time.Millisecond, 8, 16},
		"not far": {2 * time.Millisecond, 8, 64},
		"distant": {900 * time.Millisecond, 1, 512},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &distant{takes: tt.takes}
				leases := holdKeys(t, altered{Store: memstore.New(), renew: d.renew}, 2000)
				time.Sleep(asynclock.DefaultTTL)
				wantAll(t, leases)
				d.mu.Lock()
				defer d.mu.Unlock()
				renewed := 0
				for _, n := range d.sizes {
					renewed += n
				}
				if smallest, largest := slices.Min(d.sizes), slices.Max(d.sizes); renewed < len(leases) || smallest < tt.smallest || largest > tt.largest || largest < tt.largest/2 {
					t.Errorf("got %d renewals, %d to %d in a call; want all %d, and %d to %d", renewed, smallest, largest, len(leases), tt.smallest, tt.largest)
				}
				if d.atOnce > 1 {
					t.Errorf("got %d calls at once, want one after the other", d.atOnce)
				}
			})
		})
	}
}

// Leases of a long TTL come due at once, and have much time. Those of a short one that are due behind them have not.
func TestShortLeasesAreNotLostBehindLongOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &distant{takes: 150 * time.Millisecond}
		st := altered{Store: memstore.New(), renew: d.renew}
		c, err := asynclock.New(st)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { abandon(c) })
		var leases []*asynclock.Lease
		for i := range 5000 {
			leases = append(leases, lock(t, c, fmt.Sprint("long ", i), asynclock.WithTTL(time.Hour)))
		}
		for i := range 10 {
			leases = append(leases, lock(t, c, fmt.Sprint("short ", i)))
		}
		time.Sleep(40 * time.Minute)
		wantAll(t, leases)
	})
}

func TestLanesAreNotRenewedAllAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &distant{times: make(map[time.Time]bool)}
		numbered := func(key string) (number int) {
			_, _ = fmt.Sscanf(key, "key %d", &number)
			return number
		}
		const lanes, rounds = 10, 3
		holdKeys(t, altered{Store: memstore.New(), renew: d.renew, lane: numbered}, lanes)
		time.Sleep(rounds*asynclock.DefaultTTL/3 + 100*time.Millisecond) // each round is gathered a little after the grid
		d.mu.Lock()
		defer d.mu.Unlock()
		if calls := len(d.sizes); len(d.times) != calls || calls < lanes*rounds {
			t.Errorf("%d lanes taken at once, %d rounds: got %d renewals at %d moments, want each at its own", lanes, rounds, calls, len(d.times))
		}
	})
}
