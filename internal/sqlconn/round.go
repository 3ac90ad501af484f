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

// A Routine is one in the database, and how its requests and replies are written.
type Routine[Request, Reply any] struct {
	Name   string
	Put    func(*Request) (Item, error)          // makes an item of a request, or says why it makes no sense
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
	alone  []place // what the server refused together with others
	busy   []place // whose rows others have locked
}

// A place is an item, and whose it is.
type place struct {
	Item
	of int
}

// prepare makes the items. It sorts them: calls that lock rows in one order everywhere never
// wait for each other.
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

// sendAlone sends one after the other what the server refused together. Nothing has happened
// to these yet. One of them can't be served, maybe by the error of its own client. The
// others must not fail with it.
func (r *round[Request, Reply]) sendAlone(ctx context.Context) {
	for i := range r.alone {
		r.send(ctx, r.alone[i:i+1])
	}
}

// rowPatience is how long the requests of a batch wait for rows that are locked, all of
// them together; but never for more than half of what is left of its time. The answers to
// the others have come already, and are to be of use to them.
const rowPatience = time.Second

// errRowLocked: somebody has a transaction open on the lock's row. The request may have
// come through nevertheless, when we were about to give it up.
var errRowLocked = fmt.Errorf("%w: the row is locked by another transaction", store.ErrOutcomeUnknown)

// sendInLine sends one after the other those whose rows are locked, to get in line for them.
// Meanwhile nobody else's rows are locked.
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
		if err != nil && ctx.Err() == nil && inTime.Err() != nil { // of which the caller knows nothing
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

// settle makes replies of the answers, or of the error of all of them.
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
