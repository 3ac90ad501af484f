// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
)

// A replica is one client of a model, as a machine.
type replica struct {
	*world

	run     *replay
	current *caller // who waits or holds
	over    bool    // the model's client has died, or has used all its owners
	trust   int     // of the model's client, before this step

	// These are under way, as the model has it.
	asked  *machine.Acquire
	riding *machine.Acquire // on a release
	renews *machine.Renewal

	sharing
}

// replay makes the machine do what the model's client does, and compares.
func (c *replica) replay(l line, text string) {
	c.Helper()
	if c.over {
		return // what may follow are answers to its last release
	}
	c.now = c.run.start().Add(time.Duration(c.run.lines) * time.Millisecond)
	before := c.state()
	sent := c.made()
	c.act(l)
	if c.over {
		return
	}
	c.compareSent(l, sent)
	c.refuseRest(sent)
	c.compareState(l)
	if c.Failed() {
		c.Fatalf("at tick %d, line %q: the machine was %s and is %s", c.run.ticks, text, before, c.state())
	}
	c.run.noteSeen(l, before, c.state())
	c.trust, c.fence = l.trust, l.fence()
	c.over = l.state == "DEAD" || l.state == "DONE"
}

// made counts what the machine has made up to now.
type made struct{ acquires, renewals, releases int }

func (c *replica) made() made { return made{len(c.acquires), len(c.renewals), len(c.releases)} }

// act makes the steps of the machine.
func (c *replica) act(l line) {
	switch l.does {
	case "begins", "asks":
		if len(l.sends) > 3 {
			c.wants = shareOf(l.sent(3), l.sent(4))
		}
		c.ask()
	case "hears":
		c.hear(l)
	case "loses":
		c.lose(l)
	case "reads":
		if c.host.live == ownerOf(l.arg(0)) { // otherwise the shell knows no key for it
			c.read(l)
		}
	case "leaves", "quits":
		c.endOwner(func() { c.step(leave(c.current.name)) })
	case "renews":
		c.renew()
	case "unlocks":
		c.endOwner(func() { c.unlock(l) })
	case "expires":
		c.endOwner(func() { c.step(alarm) })
	case "passes":
		old := c.current
		c.arrive(old.terms.Holder)
		c.step(unlock(old.name))
	case "released":
		if l.arg(0) == 1 {
			c.answer(&c.riding, l.reply(1))
		}
	case "rests", "downgrades":
		c.keepPart(l)
	case "joins":
		c.join(l)
	case "learns":
		c.learn()
	case "repeats":
		c.answer(&c.riding, failed(store.ErrOutcomeUnknown))
	}
}

// arrive adds a caller. Its terms are its predecessor's if it has the same holder.
func (c *replica) arrive(holding string) {
	c.current = c.caller(fmt.Sprintf("c%d", len(c.callers)), []with{holder(holding), c.wants})
	c.current.terms.TTL = c.run.duration(c.run.ttl)
	c.step(func(w *world, st *machine.Step) []string {
		if err := w.key.Arrive(&c.current.waiter, st); err != nil {
			c.Fatalf("arrive: %v", err)
		}
		return nil
	})
}

// ask sends the request of the waiter. It may be the first, or a heartbeat.
func (c *replica) ask() {
	before := len(c.acquires)
	switch {
	case c.key.IsUnused():
		c.arrive("")
	case c.alarm != 0 && c.alarm <= c.now:
		c.step(alarm)
	default: // it is early, so something wakes it
		c.step(event(store.EventWake))
	}
	if len(c.acquires) == before+1 {
		c.asked = c.acquires[before]
	}
}

// renew renews as the schedule says, or by hand if that is too early.
func (c *replica) renew() {
	before := len(c.renewals)
	if c.alarm <= c.now {
		c.step(alarm)
	} else {
		c.step(renew(c.current.name, c.run.duration(c.run.ttl)))
	}
	if len(c.renewals) == before+1 {
		c.renews = c.renewals[before]
	}
}

// hear handles an answer.
func (c *replica) hear(l line) {
	switch l.args[0] {
	case "REST":
		c.hearRest(l)
		return
	case "ACQUIRE":
		if since := min(c.run.ticks-int(c.asked.Sent.Sub(start)/tick), c.run.ttl); since != l.arg(4) {
			c.Errorf("sent %d ticks ago, want %d", since, l.arg(4))
		}
		c.takeIn(l)
		c.answer(&c.asked, l.reply(1))
		return
	}
	reply := l.renewReply()
	c.watching = c.watching || reply.Err == nil && c.renews.Request.NotifyQueued
	c.step(c.renewed(reply))
}

func (c *replica) lose(l line) {
	switch {
	case c.asked != nil:
		c.answer(&c.asked, failed(store.ErrOutcomeUnknown))
	case c.renews != nil:
		c.step(c.renewed(store.RenewReply{Err: store.ErrOutcomeUnknown}))
	case len(l.args) == 0 || l.args[0] != "REST": // which is sent until it is answered
		c.Errorf("has sent nothing")
	}
}

// answer answers a request that is under way.
func (c *replica) answer(call **machine.Acquire, reply store.AcquireReply) {
	if *call == nil {
		return
	}
	c.step(func(w *world, st *machine.Step) []string {
		w.key.Answer(*call, &reply, st)
		return nil
	})
	*call = nil
}

func (c *replica) renewed(reply store.RenewReply) input {
	return func(w *world, st *machine.Step) []string {
		w.key.Renewed([]*machine.Renewal{c.renews}, []store.RenewReply{reply}, st)
		c.renews = nil
		return nil
	}
}

// unlock ends the lease. If the model's client queues again, another caller waits already. It has other
// terms, so the key does not pass inside the client.
func (c *replica) unlock(l line) {
	before, old := len(c.acquires), c.current
	if l.queuesAgain() {
		c.arrive(old.name)
	}
	c.unlockBeside()
	if c.isDowngrading() {
		c.step(alarm)
		c.endDowngrade(store.ReleaseReply{Err: store.ErrOutcomeUnknown})
	} else {
		c.step(unlock(old.name))
	}
	if l.queuesAgain() && len(c.acquires) == before+1 {
		c.riding = c.acquires[before]
	}
}

// compareSent compares what was sent with what the model's client sends.
func (c *replica) compareSent(l line, before made) {
	releases := c.endings(before.releases)
	switch wanted := len(l.sends) > 0 && l.sends[0] == "RELEASE"; {
	case wanted && len(releases) == 0 && c.gaveBack:
	case wanted && len(releases) == 1:
		c.compareRelease(l, releases[0])
	case wanted:
		c.Errorf("makes %d releases, want one", len(releases))
	case len(releases) == 1 && l.mode() == downgrading && l.trust == 0:
		c.gaveBack = true // the model's client does so as its next step
		if q := releases[0].Request(); q.Owner != ownerOf(l.gen) || q.Token != l.token || !q.Uncertain {
			c.Errorf("releases %+v, want %s with token %d, uncertain", *q, ownerOf(l.gen), l.token)
		}
	case len(releases) > 0:
		c.Errorf("releases %+v, want no release", *releases[0].Request())
	}
	switch {
	case len(l.sends) == 0:
	case l.sends[0] == "ACQUIRE":
		if c.asked == nil || c.asked.Request().Owner != ownerOf(l.sent(1)) || !c.asked.Request().Wait {
			c.Fatalf("requests %+v, want to wait as %s", c.asked, ownerOf(l.sent(1)))
		}
		c.compareShare(l, c.asked.Request().Share)
	case l.sends[0] == "REST":
		c.compareRest(l, before)
	case l.sends[0] == "RENEW":
		if c.renews == nil || c.renews.Request.Owner != ownerOf(l.sent(1)) || c.renews.Request.Token != int64(l.sent(2)) {
			c.Fatalf("renews %+v, want %s with token %d", c.renews, ownerOf(l.sent(1)), l.sent(2))
		}
		c.compareShare(l, c.renews.Request.Share)
	}
}

func (c *replica) compareRelease(l line, r *machine.Release) {
	q := r.Request()
	owner, token, uncertain := ownerOf(l.sent(1)), int64(l.sent(2)), l.sent(3) == 1
	lost := l.does == "unlocks" && c.trust == 0
	if lost && c.run.shares {
		token = c.fence // it is not larger
	}
	if q.Owner != owner || q.Token != token || (r.Requeue != nil) != l.queuesAgain() {
		c.Errorf("releases %+v, want %s with token %d, queues again: %t", *q, owner, token, l.queuesAgain())
	}
	if q.Uncertain != uncertain && (!lost || uncertain) {
		c.Errorf("releases %+v, want uncertain: %t", *q, uncertain)
	}
	if c.run.forgets && !l.queuesAgain() && q.Clean != (l.sent(5) == 1) {
		c.Errorf("releases %+v, want clean: %d", *q, l.sent(5))
	}
	if l.queuesAgain() && r.Requeue.Request().Owner != ownerOf(l.gen) {
		c.Errorf("queues again as %s, want %s", r.Requeue.Request().Owner, ownerOf(l.gen))
	}
}

// endOwner ends the use of an owner. Its requests that are under way are given up, and nothing may follow from that.
func (c *replica) endOwner(end func()) {
	asked, riding := c.asked, c.riding
	c.asked, c.riding, c.renews = nil, nil, nil
	end()
	made, state := c.made(), c.state()
	c.answer(&asked, failed(store.ErrOutcomeUnknown))
	c.answer(&riding, failed(store.ErrOutcomeUnknown))
	if c.made() != made || c.state() != state {
		c.Errorf("the end of a request that was given up changed %s to %s", state, c.state())
	}
}

// refuseRest refuses what the machine has sent and the model's client has not.
func (c *replica) refuseRest(before made) {
	for _, a := range c.acquires[before.acquires:] {
		if a != c.asked && a != c.riding {
			c.answer(&a, failed(store.ErrUnreachable))
		}
	}
	for _, r := range c.renewals[before.renewals:] {
		if r != c.renews {
			c.step(func(w *world, st *machine.Step) []string {
				w.key.Renewed([]*machine.Renewal{r}, []store.RenewReply{{Err: store.ErrUnreachable}}, st)
				return nil
			})
		}
	}
}

// compareState compares the states after a step.
func (c *replica) compareState(l line) {
	got := c.state()
	token, _, held := c.key.Held()
	trust := 0
	if held {
		left := c.key.Until(c.last).Sub(c.run.start())
		trust = max(int((left+tick-1)/tick), 0)
	}
	wanted := l.token
	if l.mode() == modelShared {
		wanted = l.fence()
	}
	same := false
	switch {
	case l.state == "WAIT":
		same = got == "waiting as "+ownerOf(l.gen)
	case l.state == "HOLD" && l.trust > 0:
		same = held && token == wanted && trust == l.trust && c.host.live == ownerOf(l.gen)
	case l.state == "HOLD":
		same = got == "unused" || held && token == wanted && trust == 0
	case l.state == "IDLE":
		same = got == "unused" || got == "waiting as "+ownerOf(l.gen)
	default: // it is not compared any more
		same = true
	}
	if !same {
		c.Fatalf("is %q with %d ticks of trust, want %s as %s, token %d, %d ticks", got, trust, l.state, ownerOf(l.gen), wanted, l.trust)
	}
	c.compareTenure(l)
}

// ownerOf returns the machine's name of the model's owner.
func ownerOf(gen int) string { return "o" + strconv.Itoa(gen+1) }

func (l line) arg(i int) int  { return number(l.args[i]) }
func (l line) sent(i int) int { return number(l.sends[i]) }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// queuesAgain reports whether the step sends a release that queues again.
func (l line) queuesAgain() bool {
	return len(l.sends) > 4 && l.sends[0] == "RELEASE" && l.sends[4] == "1"
}

// grant returns the grant with the token that the argument i is.
func (l line) grant(i int) store.Grant {
	g := store.Grant{Token: int64(l.arg(i)), TokensFollowClock: l.args[i+1] == "1"}
	if len(l.shares) > 0 {
		g.Fence, g.Weight = int64(l.last(4)), int32(l.last(3)) //nolint:gosec // small numbers
	}
	return g
}

// reply returns the answer that begins with the argument i.
func (l line) reply(i int) store.AcquireReply {
	switch l.args[i] {
	case "GRANTED":
		return store.AcquireReply{Status: store.Granted, Grant: l.grant(i + 1), Waiters: l.waiters(), Limit: l.limit(), WillNotify: len(l.shares) > 0}
	case "TOOMUCH":
		return store.AcquireReply{Status: store.TooMuch, Limit: 1}
	}
	return store.AcquireReply{Status: store.Waiting, Mark: int64(l.arg(i + 1)), Rank: 1, Remaining: -1}
}

// noteSeen notes what kind of step this was.
func (r *replay) noteSeen(l line, before, after string) {
	what := l.does
	switch {
	case l.does == "hears", l.does == "released":
		what += " " + l.args[1]
		if l.args[0] == "REST" {
			what = "hears REST " + l.args[1]
		}
	case l.does == "reads" && before != "waiting as "+ownerOf(l.arg(0)): // of another owner, or too late
	case l.does == "reads" && l.arg(1) <= l.arg(3):
		what += " a grant up to mark"
	case l.does == "reads" && l.arg(4) >= r.grantTTL:
		what += " a grant that is too old"
	case l.does == "reads":
		what += " a grant"
	}
	if share := [...]string{"", "", "reader ", "permits "}; l.mode() >= 0 {
		what = share[l.mode()] + what
	}
	r.seen[fmt.Sprintf("%s: %s to %s", what, kind(before), kind(after))]++
}

// kind is the first word of a state.
func kind(state string) string {
	first, _, _ := strings.Cut(state, " ")
	return first
}
