// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"
	"errors"
	"sync"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// Cut disconnects a client until mend is called: its requests are not answered and its events are
// lost. Afterwards the client is notified that there was a gap, as by a store that has connected
// again.
func (s *Store) Cut(client int) (mend func()) {
	from := Match(Any).From(client)
	calls, events := s.Every(from, Hang), s.EveryEvent(EventMatch(AnyEvent).For(client), Drop)
	return sync.OnceFunc(func() {
		calls()
		events()
		s.Tell(client, store.Event{Kind: store.EventResync})
	})
}

// Pause makes a client look to the store like a stopped process, until resume is called. Requests
// wait, even if their contexts end, and are executed on resume. Events wait and are then delivered
// in order. The timers of a really stopped process fire only afterwards; here they continue, so
// leases end in time.
//
// Requests of [asynclock.Client.Close] are paused too, so it waits for resume.
func (s *Store) Pause(client int) (resume func()) {
	resumed := make(chan struct{})
	var box waitingRoom
	calls := s.Every(Match(Any).From(client), Stuck(resumed, pass))
	events := s.EveryEvent(EventMatch(AnyEvent).For(client), box.keep)
	return sync.OnceFunc(func() {
		calls()
		close(resumed)
		box.open() // before its rule goes, or new events would overtake those in it
		events()
	})
}

// A waitingRoom keeps events until it is opened, and then lets all through.
type waitingRoom struct {
	mu     sync.Mutex
	kept   []func()
	isOpen bool
}

func (w *waitingRoom) keep(deliver func()) {
	w.mu.Lock()
	if !w.isOpen {
		w.kept = append(w.kept, deliver)
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	deliver()
}

// open delivers the kept events, and those that come meanwhile, in order.
func (w *waitingRoom) open() {
	for {
		w.mu.Lock()
		batch := w.kept
		w.kept, w.isOpen = nil, len(batch) == 0
		w.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, deliver := range batch {
			deliver()
		}
	}
}

// pass executes a request without a fault.
func pass(_ context.Context, carry func()) error {
	carry()
	return nil
}

// Expire ends a key's holding at once, as the end of its TTL would. The next waiter gets the key.
// The holder is not notified; it learns of the loss by its next renewal or unlock. Expire reports
// whether anyone held the key. If all clients have left, it fails with [asynclock.ErrClosed]. To
// notify the holder, use [asynclock.Client.ForceUnlock].
func (s *Store) Expire(ctx context.Context, key string) (held bool, err error) {
	s.mu.Lock()
	id, ok := s.holders[key]
	s.mu.Unlock()
	if !ok {
		return false, nil
	}
	// Any client can do it, since the holder's own may have left.
	for _, c := range s.joined() {
		reply := c.inner.Release(ctx, []store.ReleaseRequest{{Key: key, Owner: id}})[0]
		if held, err = reply.WasHeld, reply.Err; !errors.Is(err, asynclock.ErrClosed) {
			break
		}
	}
	return held, err
}
