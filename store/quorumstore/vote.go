// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A vote is what one claim has on one node: the node's lease, or a place in its queue. It begins with its first
// request, and ends with its release. Its id is never used again (Q4).
//
// The mutex of its claim guards it.
type vote struct {
	claim *claim
	node  int
	id    string // its owner id on the node
	shows int64  // the lease's token in its description; 0: it was requested before there was one

	until   watchdog.Instant // the node keeps it until then, as far as is known; 0: it is not granted
	margin  time.Duration    // by which our clock and the node's may differ until then
	offered bool             // a message says that the node has granted it
	ticket  int64            // its place in the queue
	behind  string           // while it waits: the claim that has the node
	pace                     // its tokens

	flying  int           // requests without an answer so far
	landed  chan struct{} // closed when none is flying; nil while nobody waits for that
	doubt   bool          // a request has failed, and may still take effect
	release *release      // nil until it ends
}

// live reports whether the vote is granted, and certainly has not ended.
func (v *vote) live(now watchdog.Instant) bool { return v.until != 0 && now < v.until.Add(-v.margin) }

// dead reports whether the vote was granted, and may have ended. It never revives (Q2).
func (v *vote) dead(now watchdog.Instant) bool { return v.until != 0 && !v.live(now) }

// sent notes that a request is on its way.
func (v *vote) sent(now watchdog.Instant) {
	v.flying++
	if v.before == 0 {
		v.before = now
	}
}

// waits notes an answer that the vote is not granted, but a place in the queue.
func (v *vote) waits(sent watchdog.Instant, ticket int64, holder string) {
	v.before, v.offered, v.ticket, v.behind = sent, false, ticket, holder
}

// answered notes that a request has ended, and with which error.
func (v *vote) answered(err error) {
	v.doubt = v.doubt || err != nil
	if v.flying--; v.flying == 0 && v.landed != nil {
		close(v.landed)
		v.landed = nil
	}
}

// landing returns what is closed when no request is on its way, or nil if none is.
func (v *vote) landing() chan struct{} {
	if v.flying > 0 && v.landed == nil {
		v.landed = make(chan struct{})
	}
	return v.landed
}

// extend moves the vote's end. A request that was sent then has set a TTL.
func (v *vote) extend(sent watchdog.Instant, ttl time.Duration) {
	if until := sent.Add(ttl); until > v.until {
		v.until, v.margin = until, ttl/100+5*time.Millisecond // design.md, Trust
	}
}

// granted notes an answer that grants the vote, or sets its TTL again.
func (v *vote) granted(sent, now watchdog.Instant, r *store.AcquireRequest, reply *store.AcquireReply) {
	ttl := ttlThatCounts(r.TTL, reply.TTL)
	if v.until == 0 {
		v.begin(reply.Grant, ttl, now)
	}
	v.offered, v.ticket = false, 0
	v.extend(sent, ttl)
}

// ttlThatCounts is the TTL that was requested, or what the node has set instead.
func ttlThatCounts(requested, set time.Duration) time.Duration {
	if set > 0 {
		return min(requested, set)
	}
	return requested
}
