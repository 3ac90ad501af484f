// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/backoff"
)

// Campaign campaigns as long as ctx lasts, and sends each term as an [Elected]. The receiver leads from that
// moment, and has to resign. The next term is campaigned for when the one before has ended.
//
// A term that nobody receives for [asynclock.DefaultTTL] is resigned, and campaigned for again after as long a pause.
// So a candidate that is busy leaves the lead to another. The channel is closed when the campaign is over: ctx has
// ended, or an error came that no repetition helps, such as those of [Run]. Only such an error is sent, as the last
// element.
//
// The end of ctx ends the campaign. A term that was received goes on until it is resigned or lost. Campaign
// has a goroutine, which ends with the campaign.
func Campaign(ctx context.Context, locks *asynclock.Client, key string, options ...Option) <-chan Elected {
	terms := make(chan Elected, 1)
	c, err := newCandidate(ctx, locks, key, options)
	if err != nil {
		terms <- Elected{err: err}
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
				term.giveBack()
			}
			return
		}
		terms <- Elected{term, err} // there is room: the element before was received, or taken back
		if err != nil || !follow(ctx, term, terms) {
			return
		}
	}
}

// An Elected is a term that was won, or the error that ended the campaign.
type Elected struct {
	term *Term
	err  error
}

// Term returns the term, which is the caller's since it has received the Elected. It fails if the term has ended
// meanwhile.
func (e Elected) Term() (*Term, error) {
	switch {
	case e.err != nil:
		return nil, e.err
	case e.term == nil:
		return nil, ErrNotLeader
	}
	if err := e.term.Err(); err != nil {
		return nil, err
	}
	return e.term, nil
}

// follow waits until the term that was sent has ended. It reports whether the campaign goes on.
func follow(ctx context.Context, term *Term, terms <-chan Elected) bool {
	timer := time.NewTimer(asynclock.DefaultTTL)
	defer timer.Stop()
	for {
		select {
		case <-term.Done():
			select {
			case <-terms: // nobody has received it
			default:
			}
			term.end()
			return true
		case <-ctx.Done():
			select {
			case <-terms:
				term.giveBack()
			default:
			}
			return false
		case <-timer.C:
		}
		select {
		case <-terms:
			term.giveBack()
			return backoff.Sleep(ctx, asynclock.DefaultTTL)
		default:
		}
	}
}

// giveBack resigns a term that nobody has received. It is repeated in the background.
func (t *Term) giveBack() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = t.Resign(ended)
}
