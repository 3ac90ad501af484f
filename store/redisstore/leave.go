// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A leaving is a release that is made together with others.
type leaving = joined[store.ReleaseRequest, store.ReleaseReply]

// leaves are how keys are given back together: by leave.lua, which describes its keys and arguments.
func (st *Store) leaves() kind[store.ReleaseRequest, store.ReleaseReply] {
	return kind[store.ReleaseRequest, store.ReleaseReply]{
		key:  func(q *store.ReleaseRequest) string { return q.Key },
		fits: (*session).mayLeave,
		put:  st.putLeaves,
		read: st.readLeaves,
		err:  func(r *store.ReleaseReply) *error { return &r.Err },
	}
}

// mayLeave reports whether a release is one that leave.lua may do.
func (s *session) mayLeave(q *store.ReleaseRequest) bool {
	return s.plan(q, 0) == releaseFast &&
		!s.handoffs.noted(q.Key) &&
		!s.contended.noted(q.Key) &&
		!s.uncommon.noted(q.Key) &&
		redisconn.CheckRelease(q, features) == nil
}

// putLeaves writes the releases into a call.
func (st *Store) putLeaves(c *call, all []*leaving) []*leaving {
	c.script = leaveScript
	for _, j := range all {
		c.lockKeys(st.settings.prefix, j.request.Key, "l")
	}
	for _, j := range all {
		c.lockKeys(st.settings.prefix, j.request.Key, besideKinds)
	}
	c.millis(st.settings.counterTTL)
	for _, j := range all {
		c.buffer = strconv.AppendInt(c.buffer, j.request.Token, 10)
		c.buffer = append(c.buffer, ' ')
		c.buffer = append(c.buffer, j.request.Owner...)
		c.buffer = append(c.buffer, ' ')
		c.end()
		c.number(j.request.Token)
	}
	return all
}

// readLeaves reads what leave.lua answers.
func (st *Store) readLeaves(result redisdriver.Result, in []*leaving) {
	_, refused, err := st.refused(result, len(in))
	for i, j := range in {
		switch {
		case err != nil:
			j.answer(store.ReleaseReply{Err: err})
		case refused != nil && refused[i]: // release_fast.lua will say why
		default:
			j.session.handoffs.note(j.request.Key, false)
			j.session.vacancies.note(j.request.Key)
			j.answer(store.ReleaseReply{WasHeld: true})
		}
	}
}
