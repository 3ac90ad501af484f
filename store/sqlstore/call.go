// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
)

// All that happens to a lock happens in routines in the database, one call of one
// for a whole batch, which is one round trip and one transaction. They are in the
// directory schema, and take and give JSON, so that a batch of any length is the same
// statement in every dialect.

// A routineRequest is what routines take.
type routineRequest struct {
	Schema string `json:"schema"` // what the routines have to be made for

	// For Java's table only:
	Region string `json:"region,omitempty"`
	Now    string `json:"now,omitempty"`
	Base   int64  `json:"base"` // µs

	Items []item `json:"items"`
}

// An item asks for one thing. Each routine reads some of these fields.
type item struct {
	Key    string `json:"key"`
	Name   string `json:"name,omitempty"` // for Java's table, where Key is a hash
	Owner  string `json:"owner,omitempty"`
	TTL    int64  `json:"ttl,omitempty"` // µs, as are all times here
	Holder string `json:"holder"`
	Token  int64  `json:"token"`

	Grant  int64  `json:"grant,omitempty"`
	Alive  int64  `json:"alive,omitempty"`
	Wait   bool   `json:"wait"`
	Limit  int    `json:"limit"`
	Ticket int64  `json:"ticket"`
	Watch  bool   `json:"watch"`
	Inbox  string `json:"inbox"`

	Keep      int64 `json:"keep"`
	Uncertain bool  `json:"uncertain"`
	Requeue   *item `json:"requeue,omitempty"`

	After  string `json:"after"`
	Prefix string `json:"prefix"`
	Size   int    `json:"size,omitempty"`
}

// A routineReply is what they give: the server's clock, in µs since 1970, and an answer
// for each item.
type routineReply struct {
	Clock int64    `json:"clock"`
	Items []answer `json:"items"`
}

// An answer has some of these fields.
type answer struct {
	Status  int    `json:"s"`
	Held    bool   `json:"held"`
	Token   int64  `json:"token"`
	Clocked bool   `json:"clocked"`
	Left    int64  `json:"left"` // µs
	Holder  string `json:"holder"`
	Client  string `json:"client"`
	Key     string `json:"key"`
	Name    string `json:"name"`

	Waiters int     `json:"waiters"`
	Rank    int     `json:"rank"`
	Ticket  int64   `json:"ticket"`
	Mark    int64   `json:"mark"`
	Requeue *answer `json:"requeue"`
	Queue   []struct {
		Holder string `json:"holder"`
		Age    int64  `json:"age"` // µs
	} `json:"queue"`
}

// What routines answer in s.
const (
	statusGranted = 1
	statusWaiting = 2
	statusHeld    = 3
	statusFull    = 4
	statusGone    = 5

	statusExpired = -2
	statusStolen  = -3
	statusLocked  = -4 // not the lock, its row; to one of several items only
)

// How often a statement is tried that the server rolls back because of others, and
// the pause after the first try; it doubles.
const (
	tries      = 6
	firstPause = 2 * time.Millisecond
)

// nativeSchema is what the routines of the store's own tables go by.
const nativeSchema = "native 1"

// springTime is how a time is written to a column without zone.
const springTime = "2006-01-02 15:04:05.000000"

// call runs a routine for the items.
func (st *Store) call(ctx context.Context, routine string, items []item) ([]answer, error) {
	name, r := st.settings.prefix+routine, routineRequest{Schema: nativeSchema, Items: items}
	var sent time.Time
	for try := 1; ; try++ {
		sent = time.Now()
		if s := st.settings.spring; s != nil {
			name = st.settings.prefix + "LOCK_" + routine
			r.Schema, r.Base = s.generation.column()+" 1", s.base().Microseconds()
			r.Region, r.Now = s.region, sent.UTC().Format(springTime)
		}
		text, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		whole := st.wholeTransactions.Load()
		out, err := st.dialect.call(ctx, st.db, name, string(text), whole)
		if err == nil {
			return st.read(out, sent)
		}
		if st.dialect.state(err) == stateNotReadCommitted && !whole {
			st.wholeTransactions.Store(true)
			continue // nothing has happened
		}
		if !st.dialect.again(err, name) || try == tries {
			return nil, st.failed(err, name)
		}
		if err := pause(ctx, firstPause<<(try-1)); err != nil {
			return nil, err
		}
	}
}

// pause waits for about d, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jitter returns a duration from two thirds of d to four thirds.
func jitter(d time.Duration) time.Duration { return backoff.Jitter(d, 1.0/3) }

// read reads what a routine gave.
func (st *Store) read(out string, sent time.Time) ([]answer, error) {
	var r routineReply
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return nil, fmt.Errorf("%w: %w", errReply, err)
	}
	if r.Clock <= 0 {
		return nil, errReply
	}
	st.skew.observe(time.UnixMicro(r.Clock), sent, time.Now())
	return r.Items, nil
}

// failed is the error of a call that the database did not carry out, or may not have.
func (st *Store) failed(err error, routine string) error {
	switch {
	case st.closed.Load():
		return store.ErrClosed
	case st.open && st.dialect.replaced != nil && st.dialect.replaced(err):
		means := store.ErrOutcomeUnknown // the routine may have come to its COMMIT
		if st.dialect.again(err, routine) {
			means = store.ErrUnreachable // it did not begin
		}
		return fmt.Errorf("%w: a routine is missing, which a migration may be replacing: %w", means, err)
	case st.dialect.missing(err):
		return &SchemaError{st.settings.prefix + "*", "a table or routine is missing; run the migration: " + err.Error()}
	case st.dialect.state(err) == stateNoFloor:
		return &SchemaError{st.settings.prefix + "floor", "its row is missing, as where the schema was copied without the data; run the migration: " + err.Error()}
	case st.dialect.state(err) == stateOtherSchema:
		return &SchemaError{st.settings.prefix + "*", "its routines are for another generation of the table or another release of this library; " +
			"run the migration: " + err.Error()}
	}
	return st.dialect.failure(err)
}

// micros writes a duration, rounded up: a TTL must not be shorter than what the
// client counts on.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }
