// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
)

// Retries of a statement that the server rolls back because of others: the number of tries,
// and the pause after the first try. The pause doubles each time.
const (
	tries      = 6
	firstPause = 2 * time.Millisecond
)

// Call runs a routine for the items. Where a row that it needs is locked for too long, nothing
// has been done, and the error is errRowLocked. Of several items it tells by their answers, too.
func (c *Conn) Call(ctx context.Context, routine string, items []Item) ([]Answer, error) {
	return c.call(ctx, routine, items, mostTogether)
}

func (c *Conn) call(ctx context.Context, routine string, items []Item, inLine time.Duration) ([]Answer, error) {
	name := c.Routines + routine
	for try := 1; ; try++ {
		sent := time.Now()
		text, err := json.Marshal(c.Tables.Request(sent, items))
		if err != nil {
			return nil, err
		}
		whole := c.WholeTransactions.Load()
		out, err := c.dialect.call(ctx, c.db, routineCall{name, string(text), inLine, whole})
		if err == nil {
			return c.read(out, sent)
		}
		if c.dialect.state(err) == stateNotReadCommitted && !whole {
			c.WholeTransactions.Store(true)
			continue // nothing has happened
		}
		if !c.dialect.again(err, name) || try == tries {
			return nil, c.failed(err, name)
		}
		if err := pause(ctx, firstPause<<(try-1)); err != nil {
			return nil, err
		}
	}
}

// read reads what a routine gave.
func (c *Conn) read(out string, sent time.Time) ([]Answer, error) {
	r, err := ReadReply(out)
	if err != nil {
		return nil, err
	}
	c.Tables.Observe(time.UnixMicro(r.Clock), sent, time.Now())
	return r.Items, nil
}

// pause waits for about d, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(Jitter(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Jitter returns a duration from two thirds of d to four thirds.
func Jitter(d time.Duration) time.Duration { return backoff.Jitter(d, 1.0/3) }

// failed returns the error of a call that the database did not carry out, or may not have
// carried out.
func (c *Conn) failed(err error, routine string) error {
	switch {
	case c.closed.Load():
		return store.ErrClosed
	case c.dialect.locked(err):
		return fmt.Errorf("%w: %w", errRowLocked, err)
	case c.complete.Load() && c.dialect.replaced != nil && c.dialect.replaced(err):
		means := store.ErrOutcomeUnknown // the routine may have come to its COMMIT
		if c.dialect.again(err, routine) {
			means = store.ErrUnreachable // it did not begin
		}
		return fmt.Errorf("%w: a routine is missing, which a migration may be replacing: %w", means, err)
	case c.dialect.missing(err):
		return &SchemaError{c.Prefix + "*", "a table or routine is missing; run the migration: " + err.Error()}
	case c.dialect.state(err) == stateNoFloor:
		return &SchemaError{c.Prefix + "floor", "its row is missing, as where the schema was copied without the data; run the migration: " + err.Error()}
	case c.dialect.state(err) == stateOtherSchema:
		return &SchemaError{c.Prefix + "*", "its routines are for another table or another release of this library; run the migration: " + err.Error()}
	}
	return c.dialect.failure(err)
}
