// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// closing is a Close in a goroutine of its own.
func (w *world) closing(ctx context.Context, c *asynclock.Client) *pendingOf[struct{}] {
	return begin(w, func() (struct{}, error) { return struct{}{}, c.Close(ctx) })
}

// Those who wait are told at once; those who hold may go on, and Close waits for
// them.
func TestCloseTellsWaitersAndWaitsForHolders(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		theirs := lock(w, other, "theirs")
		mine := []*asynclock.Lease{lock(w, c, "a"), lock(w, c, "b")}
		waiting := []*pending{w.ask(w.Context(), c, "theirs"), w.ask(w.Context(), c, "theirs"), w.ask(w.Context(), c, "a")}
		future := c.LockChan(w.Context(), "theirs")
		w.wait()

		p := w.closing(w.Context(), c)
		for _, q := range waiting {
			wantError(w, q.ended(), asynclock.ErrClosed)
		}
		wantError(w, errOf((<-future).Lease()), asynclock.ErrClosed)
		if got := w.inspect("theirs").Waiters; got != 0 {
			w.Errorf("the store has %d waiters, want none", got)
		}
		w.pass(10 * ttl)
		for _, l := range mine {
			p.waits()
			wantValid(w, l)
			unlock(w, l)
		}
		wantError(w, p.ended(), nil)
		wantValid(w, theirs)
		unlock(w, theirs)
		w.wantUnused()
	})
}

// An unclaimed grant is given back, and the next waiter gets the key.
func TestCloseGivesBackWhatNobodyClaimed(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		future := c.LockChan(w.Context(), "key")
		w.wait()
		p := w.ask(w.Context(), other, "key")
		wantError(w, c.Close(w.Context()), nil)
		unlock(w, p.has())
		wantError(w, errOf((<-future).Lease()), asynclock.ErrClosed)
		w.wantUnused()
	})
}

// Close takes some time over many keys. Meanwhile a future's lease is either received, and Close waits for it, or
// taken back.
func TestWhatIsReceivedDuringCloseIsTheReceivers(t *testing.T) {
	stories(t, 20, func(w *world) {
		const keys = 200 // some in each shard
		c, other := w.client(), w.client()
		turnedAway, granted := make(chan struct{}, keys), make([]<-chan asynclock.Result, keys)
		for i := range keys {
			held := lock(w, other, fmt.Sprint("held ", i))
			defer unlock(w, held)
			go func() {
				wantError(w, errOf(c.Lock(w.Context(), held.Key())), asynclock.ErrClosed)
				turnedAway <- struct{}{}
			}()
			granted[i] = c.LockChan(w.Context(), fmt.Sprint("granted ", i))
		}
		w.wait()
		closed := make(chan error, 1)
		go func() { closed <- c.Close(w.Context()) }()
		<-turnedAway
		for _, future := range granted {
			if l, err := (<-future).Lease(); err != nil {
				wantError(w, err, asynclock.ErrClosed)
			} else {
				unlock(w, l)
			}
		}
		for range keys - 1 {
			<-turnedAway
		}
		wantError(w, <-closed, nil)
	})
}

// When its context ends Close waits no longer: the leases end, and their keys
// are left to expire, since those who held them may be at work still.
func TestCloseAbandonsLeasesWhenItsContextEnds(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		a, b := lock(w, c, "a"), lock(w, c, "b")
		joined := w.join(a.Context(), c, a)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		p := w.ask(w.Context(), other, "a")
		before := time.Now()
		err := c.Close(ctx)
		wantError(w, err, context.DeadlineExceeded)
		if !strings.Contains(fmt.Sprint(err), "leases still held: 2:") {
			w.Errorf("got error %v, want it to say that two leases were held", err)
		}
		wantTime(w, "end of Close", time.Now(), before.Add(time.Minute))
		for _, l := range []*asynclock.Lease{a, b, joined} {
			wantError(w, l.Err(), asynclock.ErrClosed)
			wantError(w, context.Cause(l.Context()), asynclock.ErrClosed)
			if errors.Is(l.Err(), asynclock.ErrLost) || l.Valid(0) {
				w.Errorf("an abandoned lease: got error %v, valid %v", l.Err(), l.Valid(0))
			}
		}
		p.waits()
		p.get()
		renewals := w.store.Calls(asynclocktest.Renew.From(0))
		if expiry := renewals[len(renewals)-1].At.Add(ttl); p.at.Before(expiry) {
			w.Errorf("the key was free %v before the abandoned lease's TTL had ended", expiry.Sub(p.at))
		}
	})
}

func TestLeaseOfAClosedClient(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		abandon(c)
		before := w.calls(asynclocktest.Any)
		wantError(w, l.Renew(w.Context(), ttl), asynclock.ErrClosed)
		wantError(w, l.Unlock(w.Context()), asynclock.ErrClosed)
		wantError(w, <-l.UnlockChan(w.Context()), asynclock.ErrClosed)
		wantError(w, l.Err(), asynclock.ErrClosed)
		w.wait()
		if got := w.calls(asynclocktest.Any); got != before {
			w.Errorf("the store was asked %d times after Close, want never", got-before)
		}
	})
}

func TestClosedClientRefusesWork(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		if err := c.Close(w.Context()); err != nil {
			w.Fatal(err)
		}
		before := w.calls(asynclocktest.Any)
		never := func(context.Context, *asynclock.Lease) error {
			w.Error("called without the key")
			return nil
		}
		_, lockErr := c.Lock(w.Context(), "key")
		_, tryErr := c.TryLock(w.Context(), "key")
		_, futureErr := (<-c.LockChan(w.Context(), "key")).Lease()
		_, inspectErr := c.Inspect(w.Context(), "key")
		_, forceErr := c.ForceUnlock(w.Context(), "key", 0)
		var listErr error
		for _, listErr = range c.List(w.Context(), "key") {
		}
		for _, e := range []struct {
			op  string
			err error
		}{
			{"lock", lockErr},
			{"try lock", tryErr},
			{"lock", futureErr},
			{"lock", c.WithLock(w.Context(), "key", never)},
			{"inspect", inspectErr},
			{"force unlock", forceErr},
			{"list", listErr},
		} {
			wantError(w, e.err, asynclock.ErrClosed)
			wantOp(w, e.err, e.op, "key")
		}
		if got := w.calls(asynclocktest.Any); got != before {
			w.Errorf("the store was asked %d times after Close, want never", got-before)
		}
	})
}

// Work under a lease may go on and take its own key again while Close waits for
// it: that adds nothing to wait for.
func TestWorkUnderALeaseMayReenterWhileClosing(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "key")
		p := w.closing(w.Context(), c)
		joined := w.join(l.Context(), c, l)
		future := claim(w, c.LockChan(l.Context(), "key"))
		wantError(w, errOf(c.Lock(l.Context(), "another")), asynclock.ErrClosed)
		for _, l := range []*asynclock.Lease{l, joined, future} {
			p.waits()
			unlock(w, l)
		}
		wantError(w, p.ended(), nil)
		w.wantUnused()
	})
}

// A second Close waits for the first, or for its own context.
func TestCloseAgain(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		first, second := w.closing(w.Context(), c), w.closing(w.Context(), c)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		wantError(w, c.Close(ctx), context.DeadlineExceeded)
		first.waits()
		second.waits()
		wantValid(w, l)
		unlock(w, l)
		for _, p := range []*pendingOf[struct{}]{first, second} {
			wantError(w, p.ended(), nil)
		}
		wantError(w, c.Close(w.Context()), nil)
		w.wantCalls(asynclocktest.Close.Any, 1)
	})
}

// Close is over when everything that this client has on its way is: then it
// leaves the store, and asks nothing more of it.
func TestCloseLeavesTheStoreLast(t *testing.T) {
	story(t, func(w *world) {
		holder, c := w.client(), w.client()
		held := lock(w, holder, "key")
		ctx, cancel := context.WithCancel(w.Context())
		p := w.ask(ctx, c, "key")
		mine := lock(w, c, "mine")
		w.store.Next(asynclocktest.Release.From(1), asynclocktest.Refuse, asynclocktest.Refuse, asynclocktest.Slow(time.Second/2, 0))
		cancel()
		wantError(w, p.ended(), context.Canceled)
		answer := mine.UnlockChan(w.Context())
		wantError(w, c.Close(w.Context()), nil)
		wantError(w, <-answer, nil)
		calls := w.store.Calls(asynclocktest.Match(asynclocktest.Any).From(1))
		if last := calls[len(calls)-1]; last.Op != asynclocktest.Close {
			w.Errorf("the last request was %+v, want the leave", last)
		}
		w.pass(time.Hour)
		if got := w.calls(asynclocktest.Match(asynclocktest.Any).From(1)); got != len(calls) {
			w.Errorf("made %d requests after Close, want none", got-len(calls))
		}
		unlock(w, held)
		w.wantUnused()
		unlock(w, lock(w, w.client(), "key")) // the store is for others still
	})
}

// With a store that does not answer, Close takes little longer than its context,
// and whoever waits for a release is told that it was not confirmed.
func TestCloseWithADeadStore(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
	}{{"refusing", asynclocktest.Refuse}, {"hanging", asynclocktest.Hang}} {
		scene(t, c.name, func(w *world) {
			holder, c2 := w.client(), w.client()
			lock(w, holder, "theirs")
			mine, held := lock(w, c2, "mine"), lock(w, c2, "held")
			waiting := w.ask(w.Context(), c2, "theirs")
			future := c2.LockChan(w.Context(), "free")
			w.wait()
			w.store.Every(asynclocktest.Match(asynclocktest.Any).From(1), c.fault)
			answer := mine.UnlockChan(w.Context())
			w.pass(100 * time.Millisecond)
			ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
			defer cancel()
			before := time.Now()
			p := w.closing(ctx, c2)
			wantError(w, waiting.ended(), asynclock.ErrClosed)
			wantError(w, errOf((<-future).Lease()), asynclock.ErrClosed)
			w.pass(10 * time.Second)
			wantError(w, p.ended(), context.DeadlineExceeded)
			if took := p.at.Sub(before); took > 8*time.Second {
				w.Errorf("Close took %v, want at most three seconds more than its context", took)
			}
			wantError(w, held.Err(), asynclock.ErrClosed)
			err := <-answer
			wantError(w, err, asynclock.ErrOutcomeUnknown, asynclock.ErrClosed)
			if errors.Is(err, context.Canceled) {
				w.Errorf("got %v, whose context has not ended", err)
			}
		})
	}
}

// Not even a store that does not return from a call keeps Close for ever.
func TestCloseWithAStuckStore(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		lock(w, c, "key")
		until := make(chan struct{})
		defer func() {
			close(until)
			w.wait()
		}()
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Stuck(until, asynclocktest.Refuse))
		w.pass(ttl / 2)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		before := time.Now()
		wantError(w, c.Close(ctx), context.DeadlineExceeded)
		if took := time.Since(before); took > 4*time.Second {
			w.Errorf("Close took %v, want at most three seconds more than its context", took)
		}
	})
}

// Events may arrive after the end.
func TestEventsAfterCloseChangeNothing(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		owner := w.store.Calls(asynclocktest.Acquire.Any)[0].Owner
		abandon(c)
		for _, kind := range []store.EventKind{
			store.EventGrant, store.EventWake, store.EventQueued, store.EventForced, store.EventResync,
		} {
			w.store.Tell(0, store.Event{Kind: kind, Owner: owner})
		}
		wantError(w, l.Err(), asynclock.ErrClosed)
	})
}

// Close may come at any moment of anybody's work. Each caller has an answer, and
// nothing is left behind but what was held to the end.
func TestCloseInTheMiddleOfEverything(t *testing.T) {
	stories(t, 50, func(w *world) {
		c := w.client()
		const workers = 30
		done := make(chan struct{})
		for i := range workers {
			go func() {
				defer func() { done <- struct{}{} }()
				for {
					ctx, cancel := context.WithTimeout(w.Context(), time.Duration(i+1)*time.Millisecond)
					l, err := c.Lock(ctx, fmt.Sprint("key ", i%3))
					cancel()
					if errors.Is(err, asynclock.ErrClosed) {
						return
					}
					if err != nil {
						continue
					}
					time.Sleep(time.Duration(i+1) * 100 * time.Microsecond)
					switch err := l.Unlock(w.Context()); {
					case err == nil, errors.Is(err, asynclock.ErrClosed):
					default:
						w.Errorf("unlock: %v", err)
					}
				}
			}()
		}
		time.Sleep(5 * time.Millisecond)
		ctx, cancel := context.WithTimeout(w.Context(), time.Duration(w.calls(asynclocktest.Any)%20)*time.Microsecond)
		defer cancel()
		_ = c.Close(ctx)
		for range workers {
			<-done
		}
		w.pass(ttl)
		w.wantUnused()
	})
}

// A store that can't be joined makes no client.
func TestNewReportsWhatJoinSays(t *testing.T) {
	failed := errors.New("no more room")
	c, err := asynclock.New(altered{refuses: failed})
	if c != nil {
		t.Errorf("got a client, want none")
	}
	wantError(t, err, failed)
}

// A context that is over at the call leaves a second for work that ended with it.
func TestCloseWithAContextThatIsOver(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		ctx, end := context.WithCancel(w.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.WithLock(ctx, "key", func(ctx context.Context, _ *asynclock.Lease) error {
				<-ctx.Done()
				time.Sleep(900 * time.Millisecond) // to finish its work
				return nil
			})
		}()
		w.wait()
		end()
		wantError(w, c.Close(ctx), nil)
		if err := <-done; err != nil {
			w.Errorf("the work: %v", err)
		}
		w.wantUnused()
	})
}

func TestCloseWithAContextThatIsOverDoesNotWaitForEver(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		ctx, end := context.WithCancel(w.Context())
		end()
		began := time.Now()
		wantError(w, c.Close(ctx), context.Canceled)
		if since(began) != time.Second {
			w.Errorf("Close took %v, want 1s", since(began))
		}
		wantError(w, l.Err(), asynclock.ErrClosed)
	})
}

// After a second the log says what Close waits for, once.
func TestCloseLogsWhatItWaitsFor(t *testing.T) {
	story(t, func(w *world) {
		log := new(notebook)
		c := w.client(log.option(slog.LevelWarn))
		var leases []*asynclock.Lease
		for i := range 21 {
			leases = append(leases, lock(w, c, strconv.Itoa(i), asynclock.WithDescription("the holder")))
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close(w.Context()) }()
		w.pass(999 * time.Millisecond)
		w.wait()
		if got := log.String(); got != "" {
			w.Errorf("logged within the first second: %s", got)
		}
		w.pass(10 * time.Second)
		log.wantLine(w, "Close waits", "leases=21", "the holder")
		if n := strings.Count(log.String(), "Close waits"); n != 1 {
			w.Errorf("logged %d times, want once", n)
		}
		if n := strings.Count(log.String(), "token"); n > 10 {
			w.Errorf("%d leases named, want ten at most", n)
		}
		for _, l := range leases {
			unlock(w, l)
		}
		wantError(w, <-closed, nil)
	})
}

func TestOwnedStoreIsClosedWithItsClient(t *testing.T) {
	story(t, func(w *world) {
		owned := &closable{Store: w.store}
		c, err := asynclock.New(owned, asynclock.WithOwnedStore())
		if err != nil {
			w.Fatal(err)
		}
		if owned.closed != 0 {
			w.Error("closed before its client")
		}
		for range 2 {
			wantError(w, c.Close(w.Context()), nil)
		}
		if owned.closed != 1 {
			w.Errorf("closed %d times, want once", owned.closed)
		}
		shared := &closable{Store: w.store}
		if c, err = asynclock.New(shared); err != nil {
			w.Fatal(err)
		}
		if err := c.Close(w.Context()); err != nil || shared.closed != 0 {
			w.Errorf("a store that is not the client's: closed %d times, error %v", shared.closed, err)
		}
	})
}

// A New that fails leaves nothing for its caller to close.
func TestOwnedStoreIsClosedWhenNewFails(t *testing.T) {
	for name, options := range map[string][]asynclock.ClientOption{
		"bad option first": {asynclock.WithTTL(-1), asynclock.WithOwnedStore()},
		"bad option last":  {asynclock.WithOwnedStore(), nil},
	} {
		owned := &closable{Store: memstore.New()}
		wantError(t, errOf(asynclock.New(owned, options...)), asynclock.ErrInvalidOption)
		if owned.closed != 1 {
			t.Errorf("%s: closed %d times, want once", name, owned.closed)
		}
	}
	_, err := asynclock.New(altered{}, asynclock.WithOwnedStore()) // has no method Close
	wantError(t, err, asynclock.ErrInvalidOption)
}

func TestOwnedStoreMayBeInMemory(t *testing.T) {
	story(t, func(w *world) {
		shared := memstore.New()
		c, other := w.clientOf(shared, asynclock.WithOwnedStore()), w.clientOf(shared)
		if err := c.Close(w.Context()); err != nil {
			w.Fatal(err)
		}
		unlock(w, lock(w, other, "key"))
	})
}

// Close of a client that is closed has nothing to wait for, whatever its context.
func TestCloseOfAClosedClient(t *testing.T) {
	stories(t, 20, func(w *world) {
		c := w.client()
		if err := c.Close(w.Context()); err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		wantError(w, c.Close(ctx), nil)
	})
}

var errStaysOpen = errors.New("asynclock: stays open")

func TestCloseReportsThatTheStoreCannotBeClosed(t *testing.T) {
	story(t, func(w *world) {
		wantError(w, w.clientOf(&closable{Store: w.store, err: errStaysOpen}, asynclock.WithOwnedStore()).Close(w.Context()), errStaysOpen)
	})
}
