// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/board"
)

const (
	askTime  = 10 * time.Second // for an answer of the store
	mostRows = 500              // that one page shows
)

// A live is the board that all who look share. One of them takes the next sample, when it is time for one.
type live struct {
	sampling chan struct{} // has room for one, who has the sampler
	sampler  board.Sampler

	mu     sync.Mutex
	board  board.Board
	pace   board.Pace
	next   time.Time // when it is time for another sample
	failed error     // of the last one
	unread int       // keys of the last one that can't be read
	sorted map[choice]rows
}

func newLive(locks *asynclock.Client, prefix string) *live {
	return &live{sampling: make(chan struct{}, 1), sampler: board.Sampler{List: locks.List, Prefix: prefix}}
}

// look calls read with the board. If it is time for a sample, it takes one before, or lets another one take it. Then the board
// is as it was. The error is that of ctx.
func (l *live) look(ctx context.Context, read func(now time.Time)) error {
	if due, empty := l.isDue(); due && l.begin(ctx, empty) {
		l.take(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	read(time.Now())
	return nil
}

func (l *live) isDue() (due, empty bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Add(early).Before(l.next), l.board.Last == nil
}

// begin reports whether the caller has the sampler. It waits for it only where there is nothing yet to be shown.
func (l *live) begin(ctx context.Context, wait bool) bool {
	select {
	case l.sampling <- struct{}{}:
		return true
	default:
		if !wait {
			return false
		}
	}
	select {
	case l.sampling <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// take takes a sample, unless another one has done so meanwhile, and gives the sampler back, also if the store panics.
func (l *live) take(ctx context.Context) {
	defer func() { <-l.sampling }()
	if due, _ := l.isDue(); due {
		l.sample(ctx)
	}
}

// sample takes a sample. It does so to the end, because others wait for it.
func (l *live) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	begin := time.Now()
	s, _, err := l.sampler.Next(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.board.Update(now, s, err == nil)
	l.sorted = make(map[choice]rows)
	l.failed, l.unread, l.next = err, l.sampler.Unread(), now.Add(l.pace.After(now.Sub(begin), err))
}

// A rows has the first rows in an order, and says how many there are.
type rows struct {
	first []*board.Row
	all   int
}

// rows returns the rows in an order, which is made once for each sample.
func (l *live) rows(c choice, now time.Time) rows {
	r, known := l.sorted[c]
	if !known {
		sorted := l.board.Sorted(c.Filter, c.By, c.Reverse, now)
		r = rows{slices.Clone(sorted[:min(len(sorted), mostRows)]), len(sorted)}
		if len(l.sorted) >= mostStreams {
			clear(l.sorted)
		}
		l.sorted[c] = r
	}
	return r
}
