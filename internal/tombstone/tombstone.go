// SPDX-License-Identifier: Apache-2.0

// Package tombstone remembers withdrawn owners, so that a late request of such an owner makes
// nobody a holder. It is for stores whose requests all come through this process.
package tombstone

import "time"

// Remembered is how long a withdrawn owner stays refused. A request of this process is very
// unlikely to be under way for longer. It would get a lease that its TTL ends. The time is by Go's
// clock, which stops while the machine is suspended, as does such a request.
const Remembered = 2 * time.Minute

// Owners are owners that were withdrawn while one of their requests was unanswered. They are
// refused for a while, in case that request comes late. An owner's identity is unique, whatever its
// key.
//
// The zero Owners is empty. Owners is not safe for concurrent use.
type Owners struct {
	until map[string]time.Time
	order []string // oldest first; the oldest is forgotten first
}

// Add remembers an owner. The time counts from the first Add of this owner.
func (o *Owners) Add(owner string) {
	now := time.Now()
	o.forget(now)
	if _, known := o.until[owner]; known {
		return
	}
	if o.until == nil {
		o.until = make(map[string]time.Time)
	}
	o.until[owner] = now.Add(Remembered)
	o.order = append(o.order, owner)
}

// Has reports whether an owner is remembered.
func (o *Owners) Has(owner string) bool {
	o.forget(time.Now())
	_, known := o.until[owner]
	return known
}

func (o *Owners) forget(now time.Time) {
	for len(o.order) > 0 && !now.Before(o.until[o.order[0]]) {
		delete(o.until, o.order[0])
		o.order = o.order[1:]
	}
}
