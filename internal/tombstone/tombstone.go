// SPDX-License-Identifier: Apache-2.0

// Package tombstone remembers owners that were withdrawn, so that a request of theirs
// that comes late makes nobody a holder. It is for stores whose requests all come
// through this process.
package tombstone

import "time"

// Remembered is how long a withdrawn owner stays refused. A request of this process
// that is still under way by then is hard to imagine; it would get a lease that its
// TTL ends. (By Go's clock, which stands still while the machine is suspended, as such
// a request does.)
const Remembered = 2 * time.Minute

// Owners are those that were withdrawn while an earlier request of theirs was
// unanswered. They are refused for a while, in case it comes late. An owner is an
// identity of its own, whatever its key.
//
// The zero Owners are none. They are not safe for concurrent use.
type Owners struct {
	until map[string]time.Time
	order []string // oldest first, which is also the first to be forgotten
}

// Add remembers an owner, from the first time on that it is added.
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
