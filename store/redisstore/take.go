// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A taking is a request for a key that is made together with others.
type taking = joined[store.AcquireRequest, store.AcquireReply]

// takes are how keys are taken together: by take.lua, which describes its keys and arguments.
func (st *Store) takes() kind[store.AcquireRequest, store.AcquireReply] {
	return kind[store.AcquireRequest, store.AcquireReply]{
		key:  func(q *store.AcquireRequest) string { return q.Key },
		fits: (*session).mayTake,
		put:  st.putTakes,
		read: st.readTakes,
		err:  func(r *store.AcquireReply) *error { return &r.Err },
	}
}

// mayTake reports whether a request is one that take.lua may grant.
func (s *session) mayTake(q *store.AcquireRequest) bool {
	return q.Share.Mode == store.Exclusive &&
		q.Ticket == 0 && // the owner has no place in a queue
		!s.shared.noted(q.Key) &&
		!s.contended.noted(q.Key) &&
		s.store.seen(q.Key, q.TTL) != nil &&
		checkRequest(q) == nil
}

// sightingsDiffer is by how much the clock may differ by what was seen of it in two buckets, if one script has keys of both.
// It was set otherwise in between, and an epoch vouches for tokens by the clock that it has seen itself.
const sightingsDiffer = 50 * time.Millisecond

// putTakes writes the requests into a call that are about keys of one server, first those for vacancies.
func (st *Store) putTakes(c *call, all []*taking) (in []*taking) {
	var history string
	var clock int64
	var others []*taking
	in = make([]*taking, 0, len(all))
	for _, j := range all {
		seen := st.seen(j.request.Key, j.request.TTL)
		if seen == nil {
			continue
		}
		least := seen.least()
		if history == "" {
			history, clock = seen.history, least
		}
		if history != seen.history || max(least-clock, clock-least) > sightingsDiffer.Microseconds() {
			continue
		}
		if j.session.vacancies.noted(j.request.Key) {
			in = append(in, j)
		} else {
			others = append(others, j)
		}
	}
	vacant := len(in)
	in = append(in, others...)
	if len(in) == 0 {
		return nil
	}
	c.script = takeScript
	for _, j := range in {
		c.lockKeys(st.settings.prefix, j.request.Key, "l")
	}
	for _, j := range others {
		c.lockKeys(st.settings.prefix, j.request.Key, besideKinds)
	}
	numbers := c.epochs(st.settings.prefix, in[0], others)
	c.text(history)
	c.number(clock)
	c.number(max(int64(len(numbers)), 1))
	for i, j := range in {
		c.recordOf(&j.request, j.address)
		c.millis(j.request.TTL)
		j.chosen = 0
		if i < vacant {
			j.chosen = clock
		}
		c.number(numbers[bucketOf(j.request.Key)])
	}
	return in
}

// epochs adds the Redis keys of the epochs that take.lua looks at, and returns their numbers, by their buckets, if there
// are others than the first.
func (c *call) epochs(prefix string, first *taking, others []*taking) (numbers map[int]int64) {
	c.epochKey(prefix, first.request.Key)
	if len(others) == 0 {
		return nil
	}
	numbers = map[int]int64{bucketOf(first.request.Key): 1}
	for _, j := range others {
		if bucket := bucketOf(j.request.Key); numbers[bucket] == 0 {
			numbers[bucket] = int64(len(numbers) + 1)
			c.epochKey(prefix, j.request.Key)
		}
	}
	return numbers
}

// besideKinds are the Redis keys of a lock of which there is none if nobody has the key, waits for it or was
// withdrawn, in the order of take.lua and leave.lua.
const besideKinds = "qfx"

// recordOf adds the record of the holding that a request asks for, without the token.
func (c *call) recordOf(q *store.AcquireRequest, address string) {
	c.buffer = append(c.buffer, q.Owner...)
	c.buffer = append(c.buffer, ' ')
	c.buffer = append(c.buffer, address...)
	c.buffer = append(c.buffer, ' ')
	if asked := flags(q); asked != "-" {
		c.buffer = append(c.buffer, asked...)
	}
	c.buffer = append(c.buffer, "t "...) // the token is the clock's
	c.buffer = append(c.buffer, q.Description...)
	c.end()
}

// readTakes reads what take.lua answers.
func (st *Store) readTakes(result redisdriver.Result, in []*taking) {
	if token, ok := result.Integer(); ok && token == 0 {
		for _, j := range in { // what was seen of the server is true no more
			st.sightings[bucketOf(j.request.Key)].Store(nil)
		}
		return
	}
	token, refused, err := st.refused(result, len(in))
	for i, j := range in {
		switch {
		case err != nil:
			j.answer(store.AcquireReply{Err: err})
		case refused != nil && refused[i]:
			j.session.vacancies.forget(j.request.Key)
			j.session.contended.note(j.request.Key, true)
			j.session.rivaled.note(j.request.Key, true)
		default:
			j.answer(store.AcquireReply{
				Status:     store.Granted,
				Grant:      store.Grant{Token: cmp.Or(j.chosen, token), TokensFollowClock: true},
				WillNotify: j.request.NotifyRequests && j.address != noAddress,
			})
		}
	}
}

// refused reads what take.lua and leave.lua answer for n requests: a number, and then for which of them
// nothing was changed; nil: for none.
func (st *Store) refused(result redisdriver.Result, n int) (number int64, refused []bool, err error) {
	number, ok := result.Integer()
	if ok {
		return number, nil, nil
	}
	r := newReply(result)
	refused = make([]bool, n)
	for number = r.token(); r.err == nil && r.More(); {
		if i := r.between(1, int64(n)); r.err == nil {
			refused[i-1] = true
		}
	}
	return number, refused, r.failed(st)
}
