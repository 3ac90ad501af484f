// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"context"
	"errors"
	"sync"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// Cut takes a client's network away, until mend is called: its requests have no
// answer and its events are lost. Afterwards it is told that there was a gap, as
// a store does that has connected again.
func (s *Store) Cut(client int) (mend func()) {
	from := Match(Any).From(client)
	calls, events := s.Every(from, Hang), s.EveryEvent(EventMatch(AnyEvent).For(client), Drop)
	return sync.OnceFunc(func() {
		calls()
		events()
		s.Tell(client, store.Event{Kind: store.EventResync})
	})
}

// Pause is what the store sees of a client's process that stands still, until
// resume is called: requests wait, whatever becomes of their contexts, and are
// then carried out, and events wait and are then delivered in their order. The
// timers of a process that stands still fire afterwards; here they go on, so
// leases end in time.
//
// It stands still for [asynclock.Client.Close], too, which waits for resume.
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

// open delivers what is there and what comes meanwhile, in its order.
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

// pass carries a request out as if nothing was wrong.
func pass(_ context.Context, carry func()) error {
	carry()
	return nil
}

// Expire ends a key's holding at once, as the end of its TTL would: the next
// waiter has the key, and the holder is not told, but learns it from its next
// renewal or its unlock. It reports whether anyone held the key. If all clients
// have left, it fails with [asynclock.ErrClosed]. Take
// [asynclock.Client.ForceUnlock] for a holder that is to be told.
func (s *Store) Expire(ctx context.Context, key string) (held bool, err error) {
	s.mu.Lock()
	id, ok := s.holders[key]
	s.mu.Unlock()
	if !ok {
		return false, nil
	}
	// Through any client, since its own may have left.
	for _, c := range s.joined() {
		reply := c.inner.Release(ctx, []store.ReleaseRequest{{Key: key, Owner: id}})[0]
		if held, err = reply.WasHeld, reply.Err; !errors.Is(err, asynclock.ErrClosed) {
			break
		}
	}
	return held, err
}
