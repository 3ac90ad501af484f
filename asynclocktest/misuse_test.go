// SPDX-License-Identifier: Apache-2.0

package asynclocktest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestNilIsNoTrap(t *testing.T) {
	if _, err := asynclock.New(asynclocktest.Wrap(nil)); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("a client of nothing: got %v, want ErrInvalidOption", err)
	}
	st := asynclocktest.New()
	c := join(t, st)
	defer c.leave()
	st.Next(nil, nil, asynclocktest.Refuse) // any; the first passes
	st.Every(nil, nil)
	st.EveryEvent(nil, nil)
	st.Regrant(func(g *store.Grant) { g.Token = -1 })
	st.Regrant(nil)
	if got, _ := c.acquire("a"); got[0].Status != store.Granted || got[0].Token < 0 {
		t.Errorf("the first: got %+v, want it granted as the store did", got[0])
	}
	if got, _ := c.acquire("b"); !errors.Is(got[0].Err, asynclock.ErrUnreachable) {
		t.Errorf("the second: got %v, want it refused", got[0].Err)
	}
	if got := len(st.Calls(nil)); got != 2 {
		t.Errorf("Calls: got %d, want all 2", got)
	}
	if got := len(st.Events(nil)); got != 0 {
		t.Errorf("Events: got %d, want 0", got)
	}
}

func TestWhoHasNotComeIsNotTold(t *testing.T) {
	st := asynclocktest.New()
	st.Tell(0, store.Event{Kind: store.EventResync})
	st.Cut(1)()
	st.Pause(-1)()
	var box asynclocktest.Mailbox
	if box.Deliver(0) || box.Deliver(-1) {
		t.Error("Deliver from an empty mailbox: got true, want false")
	}
}

// A match is the test's code, and may look at what has happened so far.
func TestMatchesMayUseTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := clients(t, 1)
		stop := store.Every(func(asynclocktest.Call) bool {
			return len(store.Calls(asynclocktest.Acquire.On("key"))) > 1
		}, asynclocktest.Refuse)
		defer stop()
		unlock(t, lock(t, c[0], "key"))
		if _, err := c[0].TryLock(t.Context(), "key"); !errors.Is(err, asynclock.ErrUnreachable) {
			t.Errorf("the second request: got %v, want it refused", err)
		}
	})
}

func TestARuleThatStrikesOnceStrikesOnce(t *testing.T) {
	st := asynclocktest.New()
	c := join(t, st)
	defer c.leave()
	var second []store.AcquireReply
	st.Next(func(call asynclocktest.Call) bool {
		if call.Owner == "a" { // while the first request looks at the rule, another meets it
			second, _ = c.acquire("b")
		}
		return true
	}, asynclocktest.Refuse)
	first, _ := c.acquire("a")
	if first[0].Err != nil || !errors.Is(second[0].Err, asynclock.ErrUnreachable) {
		t.Errorf("got %v and %v, want only the second refused", first[0].Err, second[0].Err)
	}
}

// No answer is no success.
func TestAFaultThatCarriesNothingKnowsNothing(t *testing.T) {
	st := asynclocktest.New()
	c := join(t, st)
	defer c.leave()
	c.acquire("a")
	nothing := func(context.Context, func()) error { return nil }
	defer st.Every(asynclocktest.Any, nothing)()
	renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: time.Hour}
	if err := c.Renew(t.Context(), []store.RenewRequest{renewal})[0].Err; !errors.Is(err, asynclock.ErrOutcomeUnknown) {
		t.Errorf("Renew: got %v, want ErrOutcomeUnknown", err)
	}
	if _, err := c.Force(t.Context(), "key", 0); !errors.Is(err, asynclock.ErrOutcomeUnknown) {
		t.Errorf("Force: got %v, want ErrOutcomeUnknown", err)
	}
}

// A teller is a store whose events a test makes.
type teller struct {
	store.Store
	tell func(store.Event)
}

func (s *teller) Open(id string, events func(store.Event)) (store.Session, error) {
	s.tell = events
	events(store.Event{Kind: store.EventResync}) // as early as a store may
	return s.Store.Open(id, events)
}

// An event that came just before the client goes on is neither lost nor late.
func TestPauseLosesNoEvent(t *testing.T) {
	inner := &teller{Store: memstore.New()}
	st := asynclocktest.Wrap(inner)
	c := join(t, st)
	defer c.leave()
	<-c.events // the one of Open
	resume := st.Pause(0)
	last := asynclocktest.EventMatch(func(e asynclocktest.Event) bool {
		if e.Owner == "b" { // as this one is to be kept
			resume()
		}
		return false
	})
	st.EveryEvent(last, asynclocktest.Drop)
	for _, owner := range []string{"a", "b"} {
		inner.tell(store.Event{Kind: store.EventWake, Owner: owner})
	}
	var got []string
	for len(c.events) > 0 {
		got = append(got, (<-c.events).Owner)
	}
	if want := []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("events: got %q, want %q", got, want)
	}
}

// Expire stands in for a TTL, which ends whatever the holder and its network do.
func TestExpireEndsWhatItsHolderDoesNotKnowOrHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.New()
		gone, err := asynclock.New(store)
		if err != nil {
			t.Fatal(err)
		}
		lock(t, gone, "left")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := gone.Close(ended); err == nil {
			t.Error("Close: got no error, want that a lease was still held")
		}
		if held, err := store.Expire(t.Context(), "left"); held || !errors.Is(err, asynclock.ErrClosed) {
			t.Errorf("Expire without any client: got %v, %v, want ErrClosed", held, err)
		}

		c := join(t, store)
		defer c.leave()
		if held, err := store.Expire(t.Context(), "left"); !held || err != nil {
			t.Errorf("Expire of what a client left behind: got %v, %v, want true", held, err)
		}
		store.Next(asynclocktest.Acquire.Any, asynclocktest.LoseReply)
		c.acquire("a")
		if held, err := store.Expire(t.Context(), "key"); !held || err != nil {
			t.Errorf("Expire of what was granted without a reply: got %v, %v, want true", held, err)
		}
	})
}
