// SPDX-License-Identifier: Apache-2.0

package asynclocktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = time.Second

// A client asks as the core does, and collects its events.
type client struct {
	*testing.T
	store.Session
	events chan store.Event
}

func join(t *testing.T, st store.Store) *client {
	t.Helper()
	c := &client{T: t, events: make(chan store.Event, 10)}
	session, err := st.Open(t.Name(), func(e store.Event) { c.events <- e })
	if err != nil {
		t.Fatal(err)
	}
	c.Session = session
	return c
}

func (c *client) leave() {
	c.Helper()
	if err := c.Close(context.Background()); err != nil {
		c.Errorf("Close: got %v, want no error", err)
	}
}

// acquire asks once for each owner, in one batch, and also says how long the
// answer took.
func (c *client) acquire(owners ...string) ([]store.AcquireReply, time.Duration) {
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	var batch []store.AcquireRequest
	for _, owner := range owners {
		batch = append(batch, store.AcquireRequest{
			Key: "key", Owner: owner, TTL: time.Minute, GrantTTL: time.Minute, WaiterTTL: time.Minute, Wait: true,
		})
	}
	before := time.Now()
	return c.Acquire(ctx, batch), time.Since(before)
}

func (c *client) release(owner string) {
	c.Release(c.Context(), []store.ReleaseRequest{{Key: "key", Owner: owner}})
}

// held reports whether the store behind says that the key is held.
func (c *client) held() bool {
	c.Helper()
	info, err := c.Inspect(c.Context(), "key")
	if err != nil {
		c.Fatal(err)
	}
	return info.Held
}

func TestFaultsOfRequests(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	final := errors.New("final")
	for _, c := range []struct {
		name  string
		fault asynclocktest.Fault
		err   error
		takes time.Duration
		held  bool // when the answer comes
		later bool // a minute after
	}{
		{"fail", asynclocktest.Fail(final), final, 0, false, false},
		{"refuse", asynclocktest.Refuse, asynclock.ErrUnreachable, 0, false, false},
		{"lose the reply", asynclocktest.LoseReply, asynclock.ErrOutcomeUnknown, 0, true, true},
		{"silence", asynclocktest.Silence, context.DeadlineExceeded, timeout, true, true},
		{"hang", asynclocktest.Hang, context.DeadlineExceeded, timeout, false, false},
		{"stuck, then refused", asynclocktest.Stuck(closed, asynclocktest.Refuse), asynclock.ErrUnreachable, 0, false, false},
		{"slow", asynclocktest.Slow(timeout/4, timeout/4), nil, timeout / 2, true, true},
		{"slow on its way back", asynclocktest.Slow(timeout/4, timeout), context.DeadlineExceeded, timeout, true, true},
		{"too slow on its way there", asynclocktest.Slow(2*timeout, 0), context.DeadlineExceeded, timeout, false, true},
		{"again", asynclocktest.Again(timeout), nil, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := asynclocktest.Wrap(memstore.New())
				me := join(t, store)
				store.Next(asynclocktest.Acquire.On("key"), c.fault)
				replies, took := me.acquire("a")
				if err := replies[0].Err; !errors.Is(err, c.err) || took != c.takes {
					t.Errorf("got %v after %v, want %v after %v", err, took, c.err, c.takes)
				}
				if got := me.held(); got != c.held {
					t.Errorf("held then: got %v, want %v", got, c.held)
				}
				time.Sleep(30 * time.Second)
				if got := me.held(); got != c.later {
					t.Errorf("held later: got %v, want %v", got, c.later)
				}
			})
		})
	}
}

func TestStuckOutlastsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.Wrap(memstore.New())
		until := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(until) })
		store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Stuck(until, asynclocktest.LoseReply))
		if _, took := join(t, store).acquire("a"); took != time.Minute {
			t.Errorf("the call took %v, want a minute", took)
		}
	})
}

func TestOneElementOfABatchIsStruck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := asynclocktest.Wrap(memstore.New())
		isB := func(c asynclocktest.Call) bool { return c.Owner == "b" }
		st.Every(asynclocktest.Match(asynclocktest.Acquire.Any).Where(isB), asynclocktest.Refuse)
		replies, _ := join(t, st).acquire("a", "b", "c")
		if replies[0].Status != store.Granted || !errors.Is(replies[1].Err, asynclock.ErrUnreachable) || replies[2].Status != store.Waiting {
			t.Errorf("got %+v, want granted, unreachable, waiting", replies)
		}
	})
}

func TestRulesAreUsedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.Wrap(memstore.New())
		me, other := join(t, store), join(t, store)
		first, second, always := errors.New("first"), errors.New("second"), errors.New("always")
		stop := store.Every(asynclocktest.Acquire.On("key").From(0), asynclocktest.Fail(always))
		store.Next(asynclocktest.Acquire.On("key"), asynclocktest.Fail(first), asynclocktest.Fail(second))
		store.Next(asynclocktest.Renew.On("key"), asynclocktest.Refuse)
		for _, want := range []error{first, second, always, always} {
			if replies, _ := me.acquire("a"); !errors.Is(replies[0].Err, want) {
				t.Errorf("got %v, want %v", replies[0].Err, want)
			}
		}
		if replies, _ := other.acquire("b"); replies[0].Err != nil {
			t.Errorf("another client: got %v, want no error", replies[0].Err)
		}
		stop()
		if replies, _ := me.acquire("a"); replies[0].Err != nil {
			t.Errorf("after stop: got %v, want no error", replies[0].Err)
		}
		if got := len(store.Calls(asynclocktest.Acquire.On("key").From(0))); got != 5 {
			t.Errorf("recorded requests: got %d, want 5", got)
		}
	})
}

func TestFaultsOfEvents(t *testing.T) {
	for _, c := range []struct {
		name        string
		fault       asynclocktest.EventFault
		now, inHour int // how many have arrived
	}{
		{"drop", asynclocktest.Drop, 0, 0},
		{"repeat", asynclocktest.Repeat, 2, 2},
		{"delay", asynclocktest.Delay(time.Minute), 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st := asynclocktest.Wrap(memstore.New())
				holder, waiter := join(t, st), join(t, st)
				st.NextEvent(asynclocktest.Kind(store.EventGrant).For(1), c.fault)
				holder.acquire("a")
				waiter.acquire("b")
				holder.release("a")
				if got := len(waiter.events); got != c.now {
					t.Errorf("events at once: got %d, want %d", got, c.now)
				}
				time.Sleep(time.Hour)
				if got := len(waiter.events); got != c.inHour {
					t.Errorf("events in an hour: got %d, want %d", got, c.inHour)
				}
				if got := len(st.Events(asynclocktest.AnyEvent)); got != 1 {
					t.Errorf("recorded events: got %d, want 1", got)
				}
			})
		})
	}
}

func TestKeptEventsComeInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := asynclocktest.Wrap(memstore.New())
		me := join(t, st)
		var box asynclocktest.Mailbox
		stop := st.EveryEvent(asynclocktest.AnyEvent, box.Keep)
		for _, owner := range []string{"a", "b", "c"} {
			me.acquire(owner)
		}
		me.release("a")
		me.release("b")
		if got := len(me.events); got != 0 || box.Len() != 2 {
			t.Fatalf("got %d events and %d kept, want 0 and 2", got, box.Len())
		}
		box.Deliver(1)
		box.Deliver(0)
		stop()
		st.Tell(0, store.Event{Kind: store.EventResync, Owner: "made up"})
		got := []string{(<-me.events).Owner, (<-me.events).Owner, (<-me.events).Owner}
		if want := []string{"c", "b", "made up"}; !slices.Equal(got, want) {
			t.Errorf("got events for %q, want %q", got, want)
		}
	})
}

func TestEveryGrantIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := asynclocktest.Wrap(memstore.New())
		me := join(t, st)
		st.Regrant(func(g *store.Grant) { g.Reserved = -1 })
		replies, _ := me.acquire("a", "b")
		me.release("a")
		event := <-me.events
		again := me.Release(t.Context(), []store.ReleaseRequest{{
			Key: "key", Owner: "b", Requeue: &store.AcquireRequest{Key: "key", Owner: "c", TTL: time.Minute, Wait: true},
		}})
		for name, g := range map[string]store.Grant{
			"reply": replies[0].Grant, "event": event.Grant, "requeue": again[0].Requeue.Grant,
		} {
			if g.Reserved != -1 || g.Token == 0 {
				t.Errorf("%s: got grant %+v, want it changed", name, g)
			}
		}
		if g := replies[1].Grant; g != (store.Grant{}) {
			t.Errorf("a reply without a grant: got %+v, want none", g)
		}
	})
}

func TestCallsWithoutBatchesMeetFaultsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.Wrap(memstore.New())
		me := join(t, store)
		me.acquire("a")
		want := errors.New("struck")
		stop := store.Every(asynclocktest.Any, asynclocktest.Fail(want))
		_, inspect := me.Inspect(t.Context(), "key")
		_, force := me.Force(t.Context(), "key", 0)
		limit := me.setLimit(1)
		var list error
		for _, list = range me.List(t.Context(), "") {
		}
		for name, err := range map[string]error{
			"inspect": inspect, "force": force, "limit": limit, "list": list, "leave": me.Close(t.Context()),
		} {
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", name, err, want)
			}
		}
		stop()
		keys := 0
		for _, err := range me.List(t.Context(), "") {
			if err != nil {
				t.Error(err)
			}
			keys++
		}
		if held, err := me.Force(t.Context(), "key", 0); keys != 1 || !held || err != nil || me.Close(t.Context()) != nil {
			t.Errorf("without faults: got %d keys, held %v, error %v", keys, held, err)
		}
	})
}

func TestLimitIsForStoresThatHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		me := join(t, asynclocktest.Wrap(memstore.New()))
		if err := me.setLimit(3); err != nil {
			t.Errorf("SetLimit: got %v, want no error", err)
		}
		if info, err := me.Inspect(t.Context(), "key"); info.StoredLimit != 3 || err != nil {
			t.Errorf("Inspect: got a stored limit of %d, error %v; want 3", info.StoredLimit, err)
		}
		if err := join(t, asynclocktest.Wrap(limitless{memstore.New()})).setLimit(3); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("SetLimit of a store without limits: got %v, want ErrUnsupported", err)
		}
	})
}

func (c *client) setLimit(limit int32) error {
	return c.Session.(store.LimitSession).SetLimit(c.Context(), "key", limit)
}

// A limitless store has sessions that are no LimitSession.
type limitless struct{ *memstore.Store }

func (s limitless) Open(id string, events func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, events)
	return struct{ store.Session }{inner}, err
}
