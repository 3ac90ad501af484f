// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
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
	r := &round[Request, Reply]{session: s, routine: routine, batch: batch, replies: make([]Reply, len(batch)), inLine: mostInLine}
	r.prepare(ctx)
	for chunk := range slices.Chunk(r.places, s.conn.dialect.batch) {
		r.send(ctx, chunk)
	}
	r.sendAlone(ctx)
	if len(r.busy) > 0 {
		r.repeat(ctx)
	}
	return r.replies
}

// A round carries out the requests of one batch.
type round[Request, Reply any] struct {
	session *Session
	routine Routine[Request, Reply]
	batch   []Request
	replies []Reply

	places []place
	alone  []place       // refused by the server together with others
	busy   []place       // whose rows others have locked
	inLine time.Duration // how long a request that is sent alone waits for its row
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
	if err != nil && errors.Is(context.Cause(ctx), errRowUnanswered) {
		err = errRowUnanswered
	}
	switch {
	case errors.Is(err, errRowLocked):
		r.busy = append(r.busy, some...)
	case errors.Is(err, errServer) && len(some) > 1:
		r.alone = append(r.alone, some...)
	default:
		r.settle(some, answers, err)
	}
}

// sendAlone sends one by one the items that the server refused together. Nothing has been
// done for them yet. One of them can't be served, maybe because of its own client's error.
// The others must not fail with it.
func (r *round[Request, Reply]) sendAlone(ctx context.Context) {
	for i := range r.alone {
		r.send(ctx, r.alone[i:i+1])
	}
}

// repeat sends one by one the items whose rows are locked. Each waits in line for a moment, if there is
// room. Between the repetitions no connection is kept, and never another row.
func (r *round[Request, Reply]) repeat(ctx context.Context) {
	patience := r.patience(ctx)
	until := time.Now().Add(patience)
	inTime, cancel := context.WithTimeoutCause(ctx, 2*patience, errRowUnanswered)
	defer cancel()
	r.inLine = min(mostInLine, patience/time.Duration(len(r.busy)))
	waited := len(r.places) == 1
	for wait := firstRowPause; len(r.busy) > 0; wait = min(2*wait, longestRowPause) {
		if waited && (time.Until(until) < 2*wait || pause(inTime, wait) != nil) { // about wait
			break
		}
		busy := r.busy
		r.busy, waited = nil, true
		for i := range busy {
			r.send(inTime, busy[i:i+1])
		}
	}
	r.settle(r.busy, nil, errRowLocked)
}

// patience returns how long the items whose rows are locked are sent again.
func (r *round[Request, Reply]) patience(ctx context.Context) time.Duration {
	most, part := rowPatience, 8
	if len(r.places) == 1 && r.routine.Name != "RENEW" {
		most, part = longRowPatience, 2
	}
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(deadline)/time.Duration(part))
	}
	return most
}

// call calls the routine for some of the items.
func (r *round[Request, Reply]) call(ctx context.Context, some []place) (answers []Answer, err error) {
	if len(some) == 1 {
		answers, err = r.session.conn.callOne(ctx, r.routine.Name, some[0].Item, r.inLine)
	} else {
		items := make([]Item, len(some))
		for i, p := range some {
			items[i] = p.Item
		}
		answers, err = r.session.conn.Call(ctx, r.routine.Name, items)
	}
	if err == nil && len(answers) != len(some) {
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
		if answers[i].Status == StatusLocked {
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
