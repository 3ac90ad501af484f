// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock"
)

// ErrNotLeader is what [Elector.IsLeader] returns in a process that does not lead.
var ErrNotLeader = errors.New("elect: not the leader")

// An Elector says whether this process leads, for example to gocron (WithDistributedElector). Its method
// Lead is the function for [Run], which keeps each term until it is lost or resigned, or the context of Run ends:
//
//	var elector elect.Elector
//	go elect.Run(ctx, locks, "scheduler", elector.Lead)
//
// The zero Elector does not lead. It must not be copied.
type Elector struct {
	term atomic.Pointer[Term]
}

// Lead keeps the term until ctx ends, or somebody resigns the term. Then [Run] campaigns anew. Without a
// context or a term it fails with ErrInvalidOption.
func (e *Elector) Lead(ctx context.Context, term *Term) error {
	if ctx == nil || term == nil {
		return fmt.Errorf("elect: %w: nil context or term", asynclock.ErrInvalidOption)
	}
	e.term.Store(term)
	defer e.term.CompareAndSwap(term, nil)
	<-ctx.Done()
	if errors.Is(term.Err(), asynclock.ErrUnlocked) {
		return nil // it was resigned, which is no failure
	}
	return context.Cause(ctx)
}

// IsLeader returns nil in the process that leads, and [ErrNotLeader] in any other. It asks the clock, not the
// store. If ctx has ended, the error is that of ctx.
func (e *Elector) IsLeader(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("elect: %w: nil context", asynclock.ErrInvalidOption)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, leads := e.Term(); !leads {
		return ErrNotLeader
	}
	return nil
}

// Term returns the present term of this process, if it leads.
func (e *Elector) Term() (term *Term, leads bool) {
	term = e.term.Load()
	if term == nil || !term.Valid(0) {
		return nil, false
	}
	return term, true
}
