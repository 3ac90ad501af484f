// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// The times that follow from the TTL of these tests, as docs/design.md has them.
const (
	ttl       = 15 * time.Second
	beat      = 1500 * time.Millisecond  // the heartbeat
	grantTTL  = 4500 * time.Millisecond  // of a grant by message
	trusted   = 13345 * time.Millisecond // how long an answer that grants is trusted, from its sending
	trustedBy = 4 * time.Second          // the same of a message, from base
	patience  = 5 * time.Second
)

// start is when each test begins. Renewals of both TTLs have a moment of their grids here.
const start = watchdog.Instant(3_000_000 * time.Second)

// terms are what waiters ask for, unless a test says otherwise.
func terms() machine.Terms { return machine.Terms{TTL: ttl, Renew: true, QueueLimit: 100} }

// A host is a machine's host without a client. Its owners are o1, o2 and so on.
type host struct {
	owners  int
	live    string // the owner in use, the newest one; empty: none
	several bool   // others may be in use beside it, as beside a tenure
	beside  []string
	dropped int // how many owners were dropped

	leaving int      // how many releases that leave have no answer yet
	told    []string // leases that were told of their end within a step
	closing bool
	noQueue bool // the store has none
	keys    int
}

func (h *host) NewOwner() string {
	if h.live != "" {
		if !h.several {
			panic("two owners at a time")
		}
		h.beside = append(h.beside, h.live)
	}
	h.owners++
	h.live = fmt.Sprintf("o%d", h.owners)
	return h.live
}

func (h *host) DropOwner(owner string) {
	h.dropped++
	if i := slices.Index(h.beside, owner); i >= 0 {
		h.beside = slices.Delete(h.beside, i, i+1)
		return
	}
	if h.live == "" || owner != h.live {
		panic(fmt.Sprintf("drops owner %q, but %q is in use", owner, h.live))
	}
	h.live = ""
	if n := len(h.beside); n > 0 {
		h.live, h.beside = h.beside[n-1], h.beside[:n-1]
	}
}

func (*host) NewRelease() *machine.Release  { return new(machine.Release) }
func (h *host) BeginsTenure(*machine.Lease) {}

func (h *host) Leaves() { h.leaving++ }

func (h *host) TellEnded(l *machine.Lease) { h.told = append(h.told, endOf(l)) }

func (c *caller) NewHolding() (*machine.Holding, *machine.Lease) {
	return new(machine.Holding), c.NewLease()
}

func (c *caller) NewLease() *machine.Lease { return &machine.Lease{Caller: c} }

// Send puts a result into the channel of a caller, or gives it to who receives from it.
func (c *caller) Send() bool {
	if c.boxed || c.received {
		panic(c.name + " is sent a second result")
	}
	c.received, c.boxed, c.parked = c.parked, !c.parked, false
	return c.received
}

func (c *caller) Lies() bool { return c.boxed }

func (c *caller) TakeBack() bool {
	was := c.boxed && !c.between
	c.received = c.received || c.boxed && c.between
	c.boxed = false
	return was
}

func (c *caller) IsGone() bool { return c.gone }

func (c *caller) Bound() <-chan struct{} { return c.bound }

// A caller has asked for the key.
type caller struct {
	name    string
	bound   <-chan struct{}
	waiter  machine.Waiter
	terms   machine.Terms
	lease   *machine.Lease // that it has, or that lies with it
	decided int            // how often it was told a result

	gone     bool   // nobody can receive any more
	parked   bool   // of a future: somebody receives from its channel
	between  bool   // or will, just before the result is taken back
	boxed    bool   // the result is in the channel
	received bool   // somebody has it
	looked   bool   // and has looked at it
	shown    string // what its future was last seen to do
	blocker  int64  // the token of who was in its way, as the step says that has decided
}

// A world is one key's machine, with everybody it deals with. Tests make its steps.
type world struct {
	reporter

	key     machine.Key
	host    host
	now     watchdog.Instant
	alarm   watchdog.Instant // 0: not set
	callers map[string]*caller
	order   []*caller      // as they came
	last    *machine.Lease // the last one that was made
	ended   []string       // owners of requests of this step that it has ended
	outside bool           // the last input was none of the machine's

	// The machine has sent these, in this order. Tests name them by number, from 1.
	acquires []*machine.Acquire
	renewals []*machine.Renewal
	releases []*machine.Release

	downgrades []*machine.Downgrade // as they began
	left       string               // what the step says of the trust that was left at a renewal
}

// A reporter is a test, or a case of a property.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Failed() bool
}

func newWorld(t reporter) *world {
	w := &world{reporter: t, now: start, callers: make(map[string]*caller)}
	w.begin()
	return w
}

func (w *world) begin() {
	w.key.Begin("key", &w.host, machine.Traits{Queues: !w.host.noQueue, TriesRequeue: !w.host.noQueue}, w.host.leaving)
}

// An input makes one step of the machine.
type input func(w *world, st *machine.Step) []string

// step makes one step and returns its effects as text. The step's results come first.
func (w *world) step(in input) []string {
	w.Helper()
	st := machine.Step{Now: w.now, Closing: w.host.closing, Keys: max(w.host.keys, 1)}
	wasIdle := w.key.IsUnused()
	said := in(w, &st)
	w.left = option(st.Renewed+st.NotRenewed > 0, "renewed %t, %.2f left", st.Renewed > 0, st.Left)
	w.holds(wasIdle, st.Dropped)
	w.rests()
	said = append(append(said, w.host.told...), w.futures()...)
	w.host.told = nil
	return append(said, w.carryOut(&st)...)
}

// futures says what futures do now that they did not do before the step.
func (w *world) futures() (said []string) {
	for _, c := range w.order {
		now := ""
		switch c.waiter.Stage {
		case machine.Lying:
			now = fmt.Sprintf("%s lies, %d", c.name, c.waiter.Lease.Token)
			w.last, c.lease = c.waiter.Lease, c.waiter.Lease
		case machine.Idle, machine.Queued:
			c.lease = nil
		case machine.Ended:
			if c.lease != nil && c.lease.Err == nil {
				c.lease = nil // it was taken back
			}
		}
		if c.waiter.Stage == machine.Idle {
			now = c.name + " is idle"
		}
		if now != c.shown && now != "" {
			said = append(said, now)
		}
		c.shown = now
	}
	return said
}

// holds checks what is true after each step, whatever the input was.
func (w *world) holds(wasIdle, dropped bool) {
	w.Helper()
	idle := w.key.IsUnused()
	switch {
	case w.key.Misled():
		w.Errorf("the attempt is not for the first waiter")
	case w.key.Both():
		w.Errorf("there are an attempt and a holding")
	case idle && w.host.live != "", !idle && w.host.live == "" && w.key.IdleFutures() == 0 && !w.key.HeldUp():
		w.Errorf("the key is idle: %t, but its owner is %q", idle, w.host.live)
	case dropped && (!idle || w.key.Queued() > 0):
		w.Errorf("dropped, but idle: %t, and %d wait", idle, w.key.Queued())
	case idle && !wasIdle && !dropped:
		w.Errorf("unused, and not dropped")
	case idle && wasIdle && dropped:
		w.Errorf("dropped twice")
	}
}

// rests checks that each input ends with what follows from it: if the state is looked at once more, nothing does.
func (w *world) rests() {
	w.Helper()
	if w.outside {
		w.outside = false
		return
	}
	st, due := machine.Step{Now: w.now}, w.key.Due()
	w.key.Reconcile(&st)
	if st.NextAcquire() != nil || st.NextRenewal() != nil || st.NextRelease() != nil || st.NextDecided() != nil || st.NextEnded() != nil || st.Dropped || w.key.Due() != due {
		w.Errorf("in the state %s something is left to do", w.state())
	}
}

// carryOut does what the shell does, and writes it down.
func (w *world) carryOut(st *machine.Step) (did []string) {
	for d := st.NextDecided(); d != nil; d = st.NextDecided() {
		callerOf(d.Caller).blocker = st.Blocker
		did = append(did, w.decided(d))
	}
	for l := st.NextEnded(); l != nil; l = st.NextEnded() {
		did = append(did, endOf(l))
	}
	for r := st.NextRelease(); r != nil; r = st.NextRelease() {
		did = append(did, w.release(r))
	}
	for a := st.NextAcquire(); a != nil; a = st.NextAcquire() {
		did = append(did, w.acquire(a))
	}
	for r := st.NextRenewal(); r != nil; r = st.NextRenewal() {
		did = append(did, w.renewal(r))
	}
	w.endedAreWithdrawn()
	if at := w.key.Due(); at != w.alarm {
		w.alarm = at
		did = append(did, "alarm "+w.since(at))
	}
	if st.Dropped {
		did = append(did, "dropped")
		w.key = machine.Key{}
		w.begin()
	}
	for _, n := range st.Notes {
		did = append(did, n.Level.String()+" "+n.Text)
	}
	return did
}

// endedAreWithdrawn checks that requests are for the owner in use. A step may also end the owner of a request that it
// makes. Then a withdrawal tells the store of the request.
func (w *world) endedAreWithdrawn() {
	w.Helper()
	for _, owner := range w.ended {
		if last := w.releases[max(len(w.releases)-1, 0):]; len(last) == 0 || !last[0].Withdrawal || !last[0].Request().Uncertain || last[0].Request().Owner != owner {
			w.Errorf("a request for owner %q, but %q is in use", owner, w.host.live)
		}
	}
	w.ended = nil
}

func endOf(l *machine.Lease) string {
	return fmt.Sprintf("lease of %s ends: %s", callerOf(l.Caller).name, text(l.Err))
}

func callerOf(c any) *caller {
	return c.(*caller) //nolint:forcetypeassert // every waiter and lease of these tests has one
}

func (w *world) decided(d *machine.Waiter) string {
	c := callerOf(d.Caller)
	c.decided++
	switch d.Stage {
	case machine.Claimed:
		w.last, c.lease = d.Lease, d.Lease
		return fmt.Sprintf("%s has %d", c.name, d.Lease.Token)
	default:
		c.boxed = d.Future && !c.received
		return fmt.Sprintf("%s fails: %s", c.name, text(d.Err))
	}
}

// acquire notes a request, which is sent at once.
func (w *world) acquire(a *machine.Acquire) string {
	w.sends(a.Request().Owner)
	w.acquires = append(w.acquires, a)
	a.Sent = w.now
	return "acquire " + acquireText(a)
}

// sends notes that a request is for an owner that is not in use.
func (w *world) sends(owner string) {
	if owner != w.host.live && !w.host.several {
		w.ended = append(w.ended, owner)
	}
}

func (w *world) release(r *machine.Release) string {
	w.releases = append(w.releases, r)
	q := r.Request()
	said := "release " + q.Owner
	if r.Withdrawal {
		said = "withdraw " + q.Owner
	}
	said += option(q.Token != 0, " token=%d", q.Token) + option(q.HoldBack > 0, " back=%v", q.HoldBack) +
		option(q.Uncertain, " uncertain") + option(q.Clean, " clean")
	if q.Rest != nil {
		said += fmt.Sprintf(" rest=%d", q.Rest.Weight)
	}
	if r.Requeue != nil {
		if q.Requeue != r.Requeue.Request() {
			w.Errorf("the request of the next attempt does not come with the release")
		}
		w.sends(r.Requeue.Request().Owner)
		w.acquires = append(w.acquires, r.Requeue)
		r.Requeue.Sent = w.now
		said += " requeue " + acquireText(r.Requeue)
	}
	return said
}

// renewal notes a renewal. One whose holding has ended in the same step does nothing.
func (w *world) renewal(r *machine.Renewal) string {
	w.renewals = append(w.renewals, r)
	q := &r.Request
	return fmt.Sprintf("renew %s token=%d", q.Owner, q.Token) +
		option(q.TTL != ttl, " ttl=%v", q.TTL) + option(q.NotifyQueued, " watch") + weight(q.Share)
}

// acquireText is a request without what all requests of these tests have in common.
func acquireText(a *machine.Acquire) string {
	q := a.Request()
	return q.Owner + option(!q.Wait, " try") + option(q.Ticket != 0, " ticket=%d", q.Ticket) +
		option(q.NotifyQueued, " watch") + option(q.NotifyRequests, " requests") +
		weight(q.Share) + option(q.Extra > 0, " extra=%d", q.Extra) + option(q.QueueLimit == 0, " unlimited") + option(q.TTL != ttl, " ttl=%v", q.TTL) +
		option(q.GrantTTL != grantTTL, " grant=%v", q.GrantTTL) + option(q.WaiterTTL != grantTTL, " waiter=%v", q.WaiterTTL) +
		option(a.Timeout != time.Second, " timeout=%v", a.Timeout)
}

// weight is how many permits a request is for, if that is more than one.
func weight(share store.Share) string { return option(share.Weight > 1, " weight=%d", share.Weight) }

func option(given bool, format string, args ...any) string {
	if !given {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// since is a time as tests write it: since the start.
func (w *world) since(at watchdog.Instant) string {
	if at == 0 {
		return "off"
	}
	return at.Sub(start).String()
}

// state is what a caller could find out.
func (w *world) state() string {
	token, _, held := w.key.Held()
	switch {
	case w.key.IsUnused():
		return "unused"
	case w.key.Retained():
		return "retained"
	case w.host.live == "":
		return "pausing"
	case held:
		return fmt.Sprintf("holding %d until %s", token, w.since(w.key.Until(w.last)))
	default:
		return "waiting as " + w.host.live
	}
}
