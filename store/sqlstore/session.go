// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
)

// A session is one client.
type session struct {
	store  *Store
	id     string
	events func(store.Event)

	waiting waitingList
	channel string        // what its inbox listens to
	inbox   *pubsub.Inbox // nil: waiters poll

	left atomic.Bool
}

var _ store.Session = (*session)(nil)

// errReply is an answer that our routines don't give: they are others than this
// release knows.
var errReply = errors.New("sqlstore: unexpected answer of a routine: is the schema of another release?")

// Lane: all requests go through one pool to one server.
func (s *session) Lane(string) int { return 0 }

// Close ends the inbox. It waits for that until ctx ends; it ends anyway.
func (s *session) Close(ctx context.Context) error {
	if s.left.Swap(true) || s.inbox == nil {
		return nil
	}
	return s.inbox.Close(ctx)
}

// usable says why nothing can be asked any more, if so.
func (s *session) usable() error {
	if s.left.Load() || s.store.closed.Load() {
		return store.ErrClosed
	}
	return nil
}

// perform calls a routine for the requests of a batch and returns their replies. put
// makes an item of a request, or says why it makes no sense; read makes a reply of
// the answer, and failed of an error.
func perform[Request, Reply any](
	ctx context.Context, s *session, routine string, batch []Request,
	put func(*Request) (item, error),
	read func(*Request, answer) (Reply, error),
	failed func(error) Reply,
) []Reply {
	replies := make([]Reply, len(batch))
	unusable := s.usable()
	type place struct {
		item
		of int // whose item it is
	}
	var places []place
	for i := range batch {
		it, err := put(&batch[i])
		if err = cmp.Or(unusable, ctx.Err(), err); err != nil {
			replies[i] = failed(err)
			continue
		}
		places = append(places, place{it, i})
	}
	// In one order everywhere, two calls never wait for each other.
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.Key, b.Key) })
	var busy []place  // whose rows others have locked
	var alone []place // what the server refused together with others
	send := func(inTime context.Context, chunk []place) {
		items := make([]item, len(chunk))
		for i, p := range chunk {
			items[i] = p.item
		}
		answers, err := s.store.call(inTime, routine, items)
		switch {
		case err == nil && len(answers) != len(items):
			err = errReply
		case err != nil && ctx.Err() == nil && inTime.Err() != nil: // of which the caller knows nothing
			err = errRowLocked
		}
		if errors.Is(err, errServer) && len(chunk) > 1 {
			alone = append(alone, chunk...)
			return
		}
		for i, p := range chunk {
			itsErr := err
			if err == nil && answers[i].Status == statusLocked && len(chunk) > 1 {
				busy = append(busy, p)
				continue
			}
			if err == nil {
				replies[p.of], itsErr = read(&batch[p.of], answers[i])
			}
			if itsErr != nil {
				replies[p.of] = failed(itsErr)
			}
		}
	}
	for chunk := range slices.Chunk(places, s.store.dialect.batch) {
		send(ctx, chunk)
	}
	// Nothing has happened to these yet. One of them can't be served, maybe by the error of
	// its own client; the others must not fail with it.
	for i := range alone {
		send(ctx, alone[i:i+1])
	}
	// One after the other these get in line for their rows, with nobody else's locked
	// meanwhile.
	inLine(ctx, len(busy), func(inTime context.Context, i int) { send(inTime, busy[i:i+1]) })
	return replies
}

// rowPatience is how long the requests of a batch wait for rows that are locked, all of
// them together; but never for more than half of what is left of its time. The answers to
// the others have come already, and are to be of use to them.
const rowPatience = time.Second

// errRowLocked: somebody has a transaction open on the lock's row. The request may have
// come through nevertheless, when we were about to give it up.
var errRowLocked = fmt.Errorf("%w: the row is locked by another transaction", store.ErrOutcomeUnknown)

// inLine calls get for each of n requests, with the time that it has for getting its row.
func inLine(ctx context.Context, n int, get func(ctx context.Context, i int)) {
	patience := rowPatience
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	until := time.Now().Add(patience)
	for i := range n {
		inTime, cancel := context.WithTimeout(ctx, time.Until(until)/time.Duration(n-i))
		get(inTime, i)
		cancel()
	}
}

// newItem begins an item about a key.
func (st *Store) newItem(key string) (item, error) {
	if err := checkKey(key); err != nil {
		return item{}, err
	}
	if st.settings.spring != nil {
		return item{Key: lockKey(key), Name: keyName(key)}, nil
	}
	return item{Key: keyName(key)}, nil
}

// newOwnerItem begins an item about an owner's request for a key.
func (st *Store) newOwnerItem(key, owner string) (item, error) {
	it, err := st.newItem(key)
	if err == nil && !isField(owner) {
		err = fmt.Errorf("%w: owner must be printable ASCII without spaces", store.ErrBadOption)
	}
	it.Owner = owner
	if st.settings.spring != nil {
		it.Owner = clientID(owner)
	}
	return it, err
}

// maxToken is the largest token that a client can raise the counter to, so that no
// request makes it overflow.
const maxToken = 1 << 62

func checkToken(token int64) error {
	if token < 0 || token > maxToken {
		return fmt.Errorf("%w: token %d", store.ErrBadOption, token)
	}
	return nil
}

var errTTL = fmt.Errorf("%w: TTL must be positive", store.ErrBadOption)
