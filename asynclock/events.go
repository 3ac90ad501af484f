// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// onEvent handles a notification of the store.
func (c *Client) onEvent(e store.Event) {
	if e.Kind == store.EventResync || e.Kind == store.EventDisconnected {
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
	now := watchdog.Refresh()
	var fx machine.Effects
	s.machine.Event(&e, now, &fx)
	s.carryOutLocked(&fx, now)
}

// onMissedEvents is called when messages may have been lost, or will be.
func (c *Client) onMissedEvents(e *store.Event) {
	now := watchdog.Refresh()
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for _, s := range sh.keys {
			if e.OneLane && e.Lane != s.Lane() {
				continue
			}
			var fx machine.Effects
			s.machine.Missed(e.Kind == store.EventResync, now, &fx)
			s.carryOutLocked(&fx, now)
		}
		sh.mu.Unlock()
	}
}
