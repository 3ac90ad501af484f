// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"sync"
	"time"
)

// early is how much before its time something may be asked for again: those who look do so each second, but not exactly.
const early = 50 * time.Millisecond

// A look asks for what a page shows.
type look func(context.Context) (any, error)

// A shared lets many streams about the same thing ask the store as often as one of them would.
type shared struct {
	mu      sync.Mutex
	answers map[string]*answer // by what they are about
}

// An answer is what one of the streams has been shown last.
type answer struct {
	asking chan struct{} // has room for one, who has the three below
	view   any
	at     time.Time // when it was asked for
	next   time.Time // when it is to be asked for again

	streams int // under the mutex of shared
}

// join returns a look that shares with all other streams about this, for a second, whatever ask finds. It never returns what
// was found before join was called, because the user may have seen newer things. The caller calls leave at the end.
func (s *shared) join(about string, ask look) (share look, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[about]
	if a == nil {
		a = &answer{asking: make(chan struct{}, 1)}
		s.answers[about] = a
	}
	a.streams++
	joined := time.Now()
	share = func(ctx context.Context) (any, error) { return a.look(ctx, joined, ask) }
	return share, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if a.streams--; a.streams == 0 {
			delete(s.answers, about)
		}
	}
}

func (a *answer) look(ctx context.Context, notBefore time.Time, ask look) (any, error) {
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if begin := time.Now(); a.at.Before(notBefore) || !begin.Add(early).Before(a.next) {
		view, err := ask(context.WithoutCancel(ctx)) // to the end, because others wait for it
		if err != nil {
			return nil, err
		}
		a.view, a.at, a.next = view, begin, begin.Add(eventPause)
		if soon := time.Now().Add(eventPause / 2); soon.After(a.next) {
			a.next = soon // those who have waited for a slow store share its answer
		}
	}
	return a.view, ctx.Err()
}
