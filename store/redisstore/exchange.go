// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"slices"

	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// An exchange is how the requests of a kind are made and answered.
type exchange[Request, Reply any] struct {
	// put writes a request into a call, or says why it makes no sense. try counts how often it
	// was made before.
	put func(c *call, q *Request, try int) error
	// read reads the result of a call. again says that nothing has happened, and that the
	// request is to be made again, unless this was the last of the tries.
	read func(c *call, q *Request, result redisdriver.Result) (reply Reply, again bool)

	together *gathering[Request, Reply]
	address  string // of the requests that are made together
	// first says of a request that is alone whether it is to be made first as if it were not.
	first func(q *Request) bool
}

// perform makes a call of each request of a batch, or of several together, and returns their replies.
func perform[Request, Reply any](ctx context.Context, s *session, batch []Request, e exchange[Request, Reply]) []Reply {
	if len(batch) == 1 && s.usable() == nil {
		place := s.place(e.together.kind.key(&batch[0]))
		alone := s.store.traffic.enter(place)
		if alone {
			defer s.store.traffic.leave(place)
		}
		if reply, answered := e.early(ctx, s, &batch[0], alone); answered {
			return []Reply{reply}
		}
	}
	return e.perform(ctx, s, round[Request, Reply]{batch: batch, together: len(batch) > 1})
}

// early makes a request together with those of other callers, or by the same script, if it is alone and the key is
// probably free. It reports whether that has answered the request.
func (e exchange[Request, Reply]) early(ctx context.Context, s *session, q *Request, alone bool) (reply Reply, answered bool) {
	switch {
	case alone && !e.first(q), !e.together.kind.fits(s, q):
		return reply, false
	case alone:
		return e.together.alone(ctx, e.together.request(s, q, e.address))
	}
	return e.together.join(ctx, e.together.request(s, q, e.address))
}

// perform makes a call of each request of a round. Those that are to be made again follow in another round.
func (e exchange[Request, Reply]) perform(ctx context.Context, s *session, r round[Request, Reply]) []Reply {
	r.replies = make([]Reply, len(r.batch))
	left, again := e.attempt(ctx, s, r)
	e.repeat(ctx, s, r, left, r.try)
	if r.try < tries-1 {
		e.repeat(ctx, s, r, again, r.try+1)
	}
	return r.replies
}

// repeat makes the requests of these indexes again.
func (e exchange[Request, Reply]) repeat(ctx context.Context, s *session, r round[Request, Reply], indexes []int, try int) {
	if len(indexes) == 0 {
		return
	}
	rest := make([]Request, len(indexes))
	for n, i := range indexes {
		rest[n] = r.batch[i]
	}
	for n, reply := range e.perform(ctx, s, round[Request, Reply]{try: try, batch: rest}) {
		r.replies[indexes[n]] = reply
	}
}

// A round is requests that are made at once, and room for their replies.
type round[Request, Reply any] struct {
	try      int // from 0
	together bool
	batch    []Request
	replies  []Reply
}

// attempt makes the requests of a round. It returns the indexes of those that a script for several has left alone,
// and of those that are to be made again.
func (e exchange[Request, Reply]) attempt(ctx context.Context, s *session, r round[Request, Reply]) (left, again []int) {
	if err := s.usable(); err != nil {
		for i := range r.replies {
			r.replies[i] = e.together.kind.failed(err)
		}
		return nil, nil
	}
	calls := borrowCalls(len(r.batch))
	defer returnCalls(calls)
	if len(r.batch) == 1 {
		if e.one(ctx, s, r, &(*calls)[0]) {
			again = []int{0}
		}
		return nil, again
	}
	return e.many(ctx, s, r, *calls)
}

// one makes the only request of a round, and says whether it is to be made again.
func (e exchange[Request, Reply]) one(ctx context.Context, s *session, r round[Request, Reply], c *call) (again bool) {
	q := &r.batch[0]
	if err := e.put(c, q, r.try); err != nil {
		r.replies[0] = e.together.kind.failed(err)
		return false
	}
	r.replies[0], again = e.read(c, q, s.store.runOne(ctx, c))
	return again
}

// many is attempt for several requests.
func (e exchange[Request, Reply]) many(ctx context.Context, s *session, r round[Request, Reply], calls []call) (left, again []int) {
	parties, rest := e.divide(s, r, calls)
	sent := make([]int, 0, len(rest)) // whose calls are to be made
	for _, i := range rest {
		next := &calls[len(parties)+len(sent)]
		if err := e.put(next, &r.batch[i], r.try); err != nil {
			next.reset()
			r.replies[i] = e.together.kind.failed(err)
		} else {
			sent = append(sent, i)
		}
	}
	results := s.store.run(ctx, calls[:len(parties)+len(sent)])
	for n, p := range parties {
		e.together.read(results[n], p.in)
		for n, i := range p.indexes {
			if r.replies[i] = p.all[n].reply; !p.all[n].answered {
				left = append(left, i)
			}
		}
	}
	for n, result := range results[len(parties):] {
		i, repeat := sent[n], false
		if r.replies[i], repeat = e.read(&calls[len(parties)+n], &r.batch[i], result); repeat {
			again = append(again, i)
		}
	}
	return left, again
}

// A party is requests of a round that are made together.
type party[Request, Reply any] struct {
	indexes []int
	all, in []*joined[Request, Reply]
}

// divide returns which requests of a round are made together, by the first of the calls, and the indexes of the others.
func (e exchange[Request, Reply]) divide(s *session, r round[Request, Reply], calls []call) (parties []party[Request, Reply], rest []int) {
	k := e.together.kind
	var together []int
	for i := range r.batch {
		q := &r.batch[i]
		if r.together && s.place(k.key(q)) == s.place(k.key(&r.batch[0])) && k.fits(s, q) {
			together = append(together, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(together) == 1 && !e.first(&r.batch[together[0]]) {
		return nil, append(rest, together...)
	}
	for indexes := range slices.Chunk(together, maxTogether) {
		p := party[Request, Reply]{indexes: indexes}
		for _, i := range indexes {
			p.all = append(p.all, &joined[Request, Reply]{session: s, request: r.batch[i], address: e.address})
		}
		if p.in = k.put(&calls[len(parties)], p.all); len(p.in) > 0 {
			parties = append(parties, p)
		} else {
			rest = append(rest, indexes...)
		}
	}
	return parties, rest
}
