// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A Routine is a routine in the database, and the format of its requests and replies.
type Routine[Request, Reply any] struct {
	Name   string
	Put    func(*Request) (Item, error)          // makes an item of a request, or says why the request is malformed
	Read   func(*Request, Answer) (Reply, error) // makes a reply of the answer
	Failed func(error) Reply                     // makes a reply of an error
}

// Do calls a routine for the requests of a batch and returns their replies.
func Do[Request, Reply any](ctx context.Context, s *Session, routine Routine[Request, Reply], batch []Request) []Reply {
	r := &round[Request, Reply]{session: s, routine: routine, batch: batch, replies: make([]Reply, len(batch))}
	r.prepare(ctx)
	for chunk := range slices.Chunk(r.places, s.conn.dialect.batch) {
		r.send(ctx, chunk)
	}
	r.sendAlone(ctx)
	r.sendInLine(ctx)
	return r.replies
}

// A round carries out the requests of one batch.
type round[Request, Reply any] struct {
	session *Session
	routine Routine[Request, Reply]
	batch   []Request
	replies []Reply

	places []place
	alone  []place // refused by the server together with others
	busy   []place // whose rows others have locked
}

// A place is an item and the index of its request.
type place struct {
	Item
	of int
}

// prepare makes the items and sorts them. Calls that lock rows in the same order never
// deadlock.
func (r *round[Request, Reply]) prepare(ctx context.Context) {
	unusable := r.session.usable()
	for i := range r.batch {
		it, err := r.routine.Put(&r.batch[i])
		if err = cmp.Or(unusable, ctx.Err(), err); err != nil {
			r.replies[i] = r.routine.Failed(err)
			continue
		}
		r.places = append(r.places, place{it, i})
	}
	slices.SortStableFunc(r.places, func(a, b place) int { return cmp.Compare(a.Key, b.Key) })
}

// send sends some of the items in one call.
func (r *round[Request, Reply]) send(ctx context.Context, some []place) {
	answers, err := r.call(ctx, some)
	if errors.Is(err, errServer) && len(some) > 1 {
		r.alone = append(r.alone, some...)
		return
	}
	r.settle(some, answers, err)
}

// sendAlone sends one by one the items that the server refused together. Nothing has been
// done for them yet. One of them can't be served, maybe because of its own client's error.
// The others must not fail with it.
func (r *round[Request, Reply]) sendAlone(ctx context.Context) {
	for i := range r.alone {
		r.send(ctx, r.alone[i:i+1])
	}
}

// rowPatience is how long all requests of a batch together wait for locked rows. They never
// wait for more than half of the batch's remaining time, because the answers to the other
// requests have come already and must arrive in time.
const rowPatience = time.Second

// errRowLocked: another transaction is open on the lock's row. The request may still have
// succeeded while we were giving it up.
var errRowLocked = fmt.Errorf("%w: the row is locked by another transaction", store.ErrOutcomeUnknown)

// sendInLine sends one by one the items whose rows are locked, and each waits for its row.
// Meanwhile no other rows are kept locked.
func (r *round[Request, Reply]) sendInLine(ctx context.Context) {
	patience := rowPatience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	until := time.Now().Add(patience)
	for i := range r.busy {
		inTime, cancel := context.WithTimeout(ctx, time.Until(until)/time.Duration(len(r.busy)-i))
		one := r.busy[i : i+1]
		answers, err := r.call(inTime, one)
		if err != nil && ctx.Err() == nil && inTime.Err() != nil { // a limit that the caller does not know
			err = errRowLocked
		}
		r.settle(one, answers, err)
		cancel()
	}
}

// call calls the routine for some of the items.
func (r *round[Request, Reply]) call(ctx context.Context, some []place) ([]Answer, error) {
	items := make([]Item, len(some))
	for i, p := range some {
		items[i] = p.Item
	}
	answers, err := r.session.conn.Call(ctx, r.routine.Name, items)
	if err == nil && len(answers) != len(items) {
		err = ErrReply
	}
	return answers, err
}

// settle turns the answers into replies, or the error into a reply to each.
func (r *round[Request, Reply]) settle(some []place, answers []Answer, err error) {
	for i, p := range some {
		if err != nil {
			r.replies[p.of] = r.routine.Failed(err)
			continue
		}
		if answers[i].Status == statusLocked && len(some) > 1 {
			r.busy = append(r.busy, p)
			continue
		}
		reply, itsErr := r.routine.Read(&r.batch[p.of], answers[i])
		if itsErr != nil {
			reply = r.routine.Failed(itsErr)
		}
		r.replies[p.of] = reply
	}
}
