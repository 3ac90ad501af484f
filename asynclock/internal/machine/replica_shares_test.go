// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// The modes of shares.pml. A writer that is downgrading has none.
const (
	downgrading = iota
	modelExclusive
	modelShared
	modelPermits
)

// sharing is what a replica has of shares.pml. Each stake there is a client with one owner here. A tenure has a caller
// for each of its leases: a reader that joined, or a permit beyond those that the first of them wanted.
type sharing struct {
	wants  with      // what the stake asks for
	fence  int64     // before this step
	beside []*caller // the leases of the tenure except the current one

	watching   bool // the store tells the tenure's client who waits
	downgraded bool // the downgrade was answered
	gaveBack   bool // the key, since trust ended before the downgrade was answered
}

// shareOf returns what a stake asks for.
func shareOf(mode, weight int) with {
	switch mode {
	case modelShared:
		return reader
	case modelPermits:
		return permits(int32(weight)) //nolint:gosec // a small number
	default:
		return func(*caller) {}
	}
}

// takeIn prepares for a grant: the permits beyond those that the waiter wants are for others, which come just before it.
func (c *replica) takeIn(l line) {
	if _, _, held := c.key.Held(); held {
		return // it is a confirmation
	}
	if l.does == "hears" {
		c.watching = c.watching || c.asked.Request().NotifyQueued
	}
	if l.state != "HOLD" || l.mode() != modelPermits {
		return
	}
	first := c.current
	for n := l.shares[1] - int(first.waiter.Weight); n > 0; n-- {
		c.arriveBeside(1)
	}
	c.current = first
}

// arriveBeside lets another caller arrive on the same terms.
func (c *replica) arriveBeside(weight int32) {
	wants := c.wants
	c.wants = func(another *caller) {
		wants(another)
		another.waiter.Weight = min(weight, another.waiter.Weight)
	}
	c.beside = append(c.beside, c.current)
	c.arrive("")
	c.wants = wants
	c.beside[len(c.beside)-1], c.current = c.current, c.beside[len(c.beside)-1]
}

// read lets the replica have a grant by message, or a wake-up.
func (c *replica) read(l line) {
	if l.arg(1) == 0 {
		c.step(event(store.EventWake))
		return
	}
	c.takeIn(l)
	c.step(notify(store.Event{
		Kind: store.EventGrant, Grant: l.grant(1), GrantTTL: c.run.duration(c.run.grantTTL), Waiters: l.waiters(),
	}))
}

// learn tells the replica that another client waits.
func (c *replica) learn() {
	if c.host.live == ownerOf(0) {
		c.step(notify(store.Event{Kind: store.EventQueued, Waiters: 1}))
	}
}

// join lets another lease begin without the store: a reader's, or that of somebody who gets the permits of one that ends.
func (c *replica) join(l line) {
	switch old := c.current; l.mode() {
	case modelShared:
		c.arriveBeside(0)
		if another := c.beside[len(c.beside)-1]; another.waiter.Stage != machine.Claimed {
			c.Errorf("%s joins, and has no lease", another.name)
		}
	case modelPermits:
		c.arriveBeside(old.waiter.Weight)
		c.current, c.beside = c.beside[len(c.beside)-1], c.beside[:len(c.beside)-1]
		c.step(unlock(old.name))
	}
	if c.current.waiter.Stage != machine.Claimed {
		c.Errorf("%s joins, and has no lease", c.current.name)
	}
}

func (c *replica) admits() bool {
	return c.key.Admits(&machine.Waiter{Terms: c.current.waiter.Terms}, c.now)
}

// keepPart begins a downgrade, or ends a lease on one of several permits.
func (c *replica) keepPart(l line) {
	if n := len(c.beside); n > 0 {
		last := c.beside[n-1]
		c.beside = c.beside[:n-1]
		c.step(unlock(last.name))
		return
	}
	if c.over = l.does == "rests"; !c.over { // one lease on two permits is not for parts
		c.step(downgrade(c.current.name))
	}
}

func (c *replica) isDowngrading() bool { return len(c.downgrades) > 0 && !c.downgraded }

func (c *replica) endDowngrade(reply store.ReleaseReply) {
	c.downgraded = true
	old, name := c.current, fmt.Sprintf("c%d", len(c.callers))
	c.step(downgraded(1, name, reply))
	if c.current = c.callers[name]; c.current.lease == nil {
		c.current = old
	}
}

// hearRest handles the answer to a release that keeps a part.
func (c *replica) hearRest(l line) {
	reply := store.ReleaseReply{WasHeld: l.args[1] == "OK"}
	if c.isDowngrading() {
		if reply.WasHeld {
			reply.Grant = l.grant(2)
		}
		c.endDowngrade(reply)
		c.wants, c.watching = reader, false
		return
	}
	for _, r := range c.releases {
		if r.Request().Rest != nil {
			c.step(func(w *world, st *machine.Step) []string {
				_ = w.key.Rested(r, &reply, st)
				return nil
			})
		}
	}
}

// unlockBeside ends the leases beside the current one.
func (c *replica) unlockBeside() {
	for _, other := range c.beside {
		c.step(unlock(other.name))
	}
	c.beside = nil
}

// endings returns the releases from that one on that end the stake's owner.
func (c *replica) endings(from int) (ends []*machine.Release) {
	for _, r := range c.releases[from:] {
		if q := r.Request(); q.Rest == nil && (!c.run.shares || q.Owner == ownerOf(0)) {
			ends = append(ends, r)
		}
	}
	return ends
}

// compareRest compares the request to keep a part.
func (c *replica) compareRest(l line, before made) {
	q := store.ReleaseRequest{}
	switch releases := c.releases[before.releases:]; {
	case l.does == "repeats":
		return // which the client's shell does, until it is answered
	case l.does == "downgrades" && len(c.downgrades) > 0:
		q = c.downgrades[0].Request
	case l.does == "rests" && len(releases) > 0:
		q = *releases[0].Request()
	}
	same := q.Rest != nil && q.Owner == ownerOf(0) && q.Token == int64(l.sent(2))
	if same && l.does == "downgrades" {
		same = q.Rest.Mode == store.Shared
	} else if same {
		same = q.Rest.Mode == store.Permits && int(q.Rest.Weight) == l.sent(4)
	}
	if !same {
		c.Errorf("keeps %+v, want %v", q, l.sends)
	}
}

// compareShare compares the share that a request is for, or that a renewal says that the client has.
func (c *replica) compareShare(l line, share store.Share) {
	if len(l.shares) == 0 {
		return
	}
	if int(share.Mode)+1 != l.sent(3) || share.Mode == store.Permits && int(share.Weight) != l.sent(4) {
		c.Errorf("sends %+v, want %v", share, l.sends)
	}
}

// compareTenure compares whom a tenure admits, and how many permits there are. Somebody joins in the machine only if the
// store has agreed to tell of others. A block that is stale passes nothing on; otherwise that is bounded.
func (c *replica) compareTenure(l line) {
	if l.state != "HOLD" || l.trust == 0 {
		return
	}
	closed, stale := len(l.shares) > 3 && l.shares[3] == 1, len(l.shares) > 4 && l.shares[4] == 1
	switch l.mode() {
	case modelShared:
		c.run.seen[fmt.Sprintf("a tenure is closed: %t", closed)]++
		if admits := c.admits(); admits != (!closed && c.watching) {
			c.Errorf("admits readers: %t, but is closed: %t, is notified: %t", admits, closed, c.watching)
		}
	case modelPermits:
		c.run.seen[fmt.Sprintf("a block is stale: %t", stale)]++
		kept, old, passes := c.key.Permits(c.now)
		if int(kept) != l.shares[1] || old != stale || passes && stale {
			c.Errorf("keeps %d permits, stale: %t, passes them on: %t, want %d, %t", kept, old, passes, l.shares[1], stale)
		}
	}
}

// mode returns what the client has in a run of shares.pml.
func (l line) mode() int {
	if len(l.shares) == 0 {
		return -1
	}
	return l.shares[0]
}

// fence returns the token of a reader, and a number that means nothing of others.
func (l line) fence() int64 {
	if len(l.shares) < 3 {
		return 0
	}
	return int64(l.shares[2])
}

// last returns the argument that is so far from the end, or 0 in a run of lock.pml. In shares.pml answers and messages end
// with the fence, the permits, whether somebody waits, and the number of permits in force.
func (l line) last(n int) int {
	if len(l.shares) == 0 {
		return 0
	}
	return l.arg(len(l.args) - n)
}

func (l line) waiters() int { return l.last(2) }
func (l line) limit() int32 { return int32(l.last(1)) } //nolint:gosec // a small number

func (l line) renewReply() (reply store.RenewReply) {
	if l.args[1] != "OK" {
		reply.Err = store.ErrExpired
		return reply
	}
	if reply.Waiters = l.waiters(); l.mode() == modelPermits {
		reply.Limit = int32(l.arg(2)) //nolint:gosec // a small number
	}
	return reply
}
