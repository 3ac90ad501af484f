// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"context"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Campaign campaigns as long as ctx lasts, and sends each term as an [Elected]. The channel has room for one.
// The next term is campaigned for when the one before has ended, and [Elected.Term] of its element was called.
// A term whose element is not claimed within [asynclock.DefaultTTL] is given back. So an element that is received and
// dropped stops the campaign until Term is called: who does not look after a term would not look after the
// next one either, and another candidate leads meanwhile. The channel is closed when the campaign is over: ctx has ended, or an error
// came that no repetition helps, such as those of [Run]. Only such an error is sent, as the last element.
//
// The end of ctx ends the campaign. A term that was claimed goes on until it is resigned or lost. Campaign
// has a goroutine, which ends with the campaign.
func Campaign(ctx context.Context, locks *asynclock.Client, key string, options ...Option) <-chan Elected {
	terms := make(chan Elected, 1)
	c, err := newCandidate(ctx, locks, key, options)
	if err != nil {
		terms <- Elected{&offer{err: err}}
		close(terms)
		return terms
	}
	go c.campaign(ctx, terms) // ends with ctx, or after an error
	return terms
}

// campaign sends terms until ctx ends.
func (c *candidate) campaign(ctx context.Context, terms chan Elected) {
	defer close(terms)
	for {
		term, err := c.next(ctx)
		if ctx.Err() != nil {
			if term != nil {
				_ = term.Resign(ctx) // it is repeated in the background
			}
			return
		}
		o := &offer{term: term, err: err, claimed: make(chan struct{})}
		terms <- Elected{o} // there is room: the element before was claimed
		if err != nil || !o.await(ctx) {
			return
		}
	}
}

// An Elected is a term that was won, or the error that ended the campaign.
type Elected struct{ offer *offer }

// Term claims the term: from here on the caller leads, and has to resign. It fails if the term has ended, or
// was given back: it was not claimed in time ([asynclock.ErrNotClaimed]), or the context of the campaign had
// ended. It can be repeated.
func (e Elected) Term() (*Term, error) {
	if e.offer == nil {
		return nil, ErrNotLeader
	}
	return e.offer.claim()
}

// An offer is a term that nobody has claimed yet.
type offer struct {
	mu      sync.Mutex
	term    *Term
	err     error
	claimed chan struct{} // closed by the first claim
	once    sync.Once
}

func (o *offer) claim() (*Term, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claimed != nil {
		o.once.Do(func() { close(o.claimed) })
	}
	if o.err == nil {
		o.err = o.term.Err()
	}
	if o.err != nil {
		return nil, o.err
	}
	return o.term, nil
}

// await waits until the term was claimed and has ended. It reports whether the campaign goes on.
func (o *offer) await(ctx context.Context) bool {
	timer := time.NewTimer(asynclock.DefaultTTL)
	defer timer.Stop()
	select {
	case <-o.claimed:
	case <-timer.C:
		o.withdraw(asynclock.ErrNotClaimed)
	case <-ctx.Done():
	}
	select {
	case <-o.claimed:
	case <-ctx.Done():
		o.withdraw(context.Cause(ctx))
		return false
	}
	select {
	case <-o.term.Done():
		o.term.end()
		return true
	case <-ctx.Done():
		return false
	}
}

// withdraw gives the term back, unless it was claimed.
func (o *offer) withdraw(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.claimed:
		return
	default:
	}
	if o.err == nil {
		o.err = why
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = o.term.Resign(ended) // it is repeated in the background
	}
}
