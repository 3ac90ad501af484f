// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"github.com/asynclock/asynclock-go/store"
)

// onEvent handles a notification of the store.
func (c *Client) onEvent(e store.Event) {
	if e.Kind == store.EventResync || e.Kind == store.EventDisconnected {
		c.deaf.told(&e)
		c.onMissedEvents(&e)
		return
	}
	if e.Kind == store.EventAnnounced || e.Kind == store.EventObserving || e.Kind == store.EventUnobserved {
		c.observers.told(&e)
		return
	}
	s := c.byOwner(e.Owner)
	if s == nil {
		return // the owner is forgotten; see W7 in docs/design.md
	}
	defer s.shard.mu.Unlock()
	st := s.stepNow()
	s.machine.Event(&e, &st)
	s.carryOutLocked(&st)
}

// onMissedEvents is called when messages may have been lost, or will be.
func (c *Client) onMissedEvents(e *store.Event) {
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			if e.OneLane && e.Lane != c.session.Lane(s.machine.Name) {
				continue
			}
			st := s.stepNow()
			s.machine.Missed(e.Kind == store.EventResync, &st)
			s.carryOutLocked(&st)
		}
		sh.mu.Unlock()
	}
}
