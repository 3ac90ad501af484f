// SPDX-License-Identifier: Apache-2.0

package machine

// A Way is how a waiter has come to its lease.
type Way uint8

// The ways.
const (
	WayAtOnce     Way = iota // the store granted it, and nobody was known to be in the way
	WayQueued                // the store granted it to this client after others
	WayLocal                 // it was passed on inside this client, or admitted to what this client has
	WayRetained              // this client had kept the key, and nobody had it
	WayJoined                // by re-entry
	WayDowngraded            // of a writer's lease
	Ways                     // how many there are
)

// way returns how a grant comes to w, the first waiter. Message says that a message brought it. An attempt that has begun
// after w came was begun when another lease had ended.
func (a *Attempt) way(w *Waiter, message bool) Way {
	if message || a.blocker != nil || a.grace != 0 || a.base > w.Since {
		return WayQueued
	}
	return WayAtOnce
}

// nextWay returns how the next lease of an exclusive holding comes. Until somebody has seen the present one, it is as new.
func (h *Holding) nextWay() Way {
	switch {
	case h.unseen:
		return h.way
	case h.lease == nil:
		return WayRetained
	}
	return WayLocal
}

// A Use is what a client does with a key, as a set.
type Use uint8

// The uses.
const (
	Waits  Use = 1 << iota // it has a request or a place in the queue in the store
	Keeps                  // it retains the key
	Lends                  // something lies in a future's channel
	Wanted                 // it has the key, and another client is known to want it
	Uses   = 4             // how many there are
)

// Use returns what the client does with the key at present.
func (k *Key) Use() (u Use) {
	for s := &k.stakes; s != nil; s = s.next {
		switch {
		case s.attempt != nil:
			u |= Waits
		case s.holding == nil:
			continue
		case s.isRetained():
			u |= Keeps
		case s.isLying():
			u |= Lends
		}
		if s.holding != nil && s.isContestedElsewhere() {
			u |= Wanted
		}
	}
	return u
}
