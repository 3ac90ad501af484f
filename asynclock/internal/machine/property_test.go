// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// TestPromises feeds a machine with random inputs. They keep to the store's contract: tokens of grants rise
// with the store's clock, and an owner is granted only what it has asked for. Otherwise answers and
// notifications may come in any order, late, or never.
//
// See promises, [world.holds] and [world.sends] for what must hold after each step, and end for what must
// hold in the end.
func TestPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { runScript(t, store.Exclusive) })
}

// TestPromisesOfTenures does the same with readers and permits. It checks what its callers are told, and that nothing
// is left.
func TestPromisesOfTenures(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]store.Mode{"readers": store.Shared, "permits": store.Permits} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { runScript(t, mode) })
		})
	}
}

func runScript(t *rapid.T, mode store.Mode) {
	s := &script{
		world: newWorld(t), T: t, mode: mode,
		begun: make(map[string]watchdog.Instant), proven: make(map[string]watchdog.Instant),
		tokens: make(map[string]int64), counted: make(map[*machine.Lease]bool), held: make(map[string]bool), open: make(map[*machine.Acquire]bool), weights: make(map[string]int32),
		rested: make(map[int]bool),
	}
	s.host.several = mode != store.Exclusive
	actions := s.actions()
	for range rapid.IntRange(20, 120).Draw(t, "steps") {
		rapid.SampledFrom(actions).Draw(t, "action").do()
		s.triesEnd()
		if what := s.key.Unwatched(); what != "" {
			s.Errorf("in the state %s nobody looks at %s", s.state(), what)
		}
		if s.key.Miscounts() {
			s.Errorf("in the state %s the limit of the queue is miscounted", s.state())
		}
		if mode == store.Exclusive {
			s.promises()
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	s.end()
}

// A script is a run of a machine with random inputs.
type script struct {
	*world
	T    *rapid.T
	mode store.Mode // of its callers; among readers are writers

	// By owner.
	begun  map[string]watchdog.Instant // base: when it began, or when its last request was sent that was answered "waiting"
	proven map[string]watchdog.Instant // how long the store has promised the key to it, less the margin
	tokens map[string]int64            // of its last grant
	held   map[string]bool             // it has held the key

	weights map[string]int32 // that its last request was for

	counter int64                   // the store's last token
	largest int64                   // that a lease has had
	counted map[*machine.Lease]bool // its token is
	lain    watchdog.Instant        // since when the key lies; 0: it does not
	wanted  watchdog.Instant        // since when others are known to want what the owner has; 0: they are not
	over    *machine.Lease          // its deadline has passed

	open    map[*machine.Acquire]bool // under way
	waiting []*machine.Renewal        // under way
	seen    int                       // how many requests are in open, or were
	renewed int
	given   int // how many releases the store has

	rested     map[int]bool // releases of a part that were answered
	downgraded int          // how many downgrades were answered
}

// An action is named so that a failure shows what was done.
type action struct {
	name string
	do   func()
}

func (a action) String() string { return a.name }

func (s *script) actions() []action {
	return []action{
		{"arrive", s.arrive},
		{"arrive", s.arrive},
		{"answer", s.answer},
		{"answer", s.answer},
		{"answer", s.answer},
		{"message", s.message},
		{"notify", s.notify},
		{"pass time", s.passTime},
		{"pass time", s.passTime},
		{"alarm", s.alarmDue},
		{"alarm", s.alarmDue},
		{"deadline", s.deadline},
		{"leave", s.leave},
		{"left", s.left},
		{"left", s.left},
		{"receive", s.receive},
		{"receive", s.receive},
		{"receive meanwhile", s.receiveBetween},
		{"stop receiving", s.stop},
		{"forget", s.forget},
		{"look", s.look},
		{"look", s.look},
		{"unlock", s.unlock},
		{"unlock", s.unlock},
		{"join", s.join},
		{"answer a renewal", s.answerRenewal},
		{"answer a renewal", s.answerRenewal},
		{"renew", s.renew},
		{"answer a release of a part", s.rest},
		{"downgrade", s.downgrade},
		{"answer a downgrade", s.answerDowngrade},
		{"part", s.part},
	}
}

// make makes one step, and learns what was sent.
func (s *script) make(in input) {
	owner := s.host.live
	s.step(in)
	if s.host.live != owner {
		s.wanted = 0
	}
	for ; s.seen < len(s.acquires); s.seen++ {
		a := s.acquires[s.seen]
		s.open[a] = true
		s.weights[a.Request().Owner] = a.Request().Share.Weight
		if _, known := s.begun[a.Request().Owner]; !known {
			s.begun[a.Request().Owner] = s.now
		}
	}
	for ; s.given < len(s.releases); s.given++ { // the store learns the last token of the holding
		q := s.releases[s.given].Request()
		s.counter = max(s.counter, q.Token)
		s.held[q.Owner] = s.held[q.Owner] || q.Token != 0 // perhaps within this step
	}
	for ; s.renewed < len(s.renewals); s.renewed++ {
		s.waiting = append(s.waiting, s.renewals[s.renewed])
	}
	if _, _, held := s.key.Held(); held {
		s.held[s.host.live] = true
	}
}

func (s *script) bool(label string) bool { return rapid.Bool().Draw(s.T, label) }

// next returns the store's next token.
func (s *script) next() int64 {
	s.counter = max(s.counter+1, int64(s.now)/int64(time.Microsecond))
	return s.counter
}

func (s *script) arrive() {
	kind := rapid.SampledFrom(kindsOf[s.mode]).Draw(s.T, "kind")
	name := fmt.Sprintf("c%d", len(s.callers))
	s.makeUnlessRefused(name, arrive(name, kind.changes...))
}

// makeUnlessRefused makes one step, after which the caller is forgotten if it was refused.
func (s *script) makeUnlessRefused(name string, in input) {
	refused := false
	s.make(func(w *world, st *machine.Step) []string {
		said := in(w, st)
		refused = len(said) > 0
		return said
	})
	if refused {
		delete(s.callers, name)
		s.callers["refused "+name] = &caller{name: name, decided: 1, waiter: machine.Waiter{Stage: machine.Ended}}
	}
}

// pick returns one of the callers that fit, or "".
func (s *script) pick(fits func(*caller) bool) string {
	var names []string
	for name, c := range s.callers {
		if fits(c) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return rapid.SampledFrom(names).Draw(s.T, "caller")
}

func (s *script) leave() {
	if name := s.pick(func(c *caller) bool { return c.waiter.Stage < machine.Claimed }); name != "" {
		s.make(leave(name))
	}
}

// pending reports whether the caller may still receive its result.
func pending(c *caller) bool { return c.waiter.Future && !c.received && !c.gone }

func (s *script) receive() {
	if name := s.pick(func(c *caller) bool { return pending(c) && !c.parked }); name != "" {
		s.make(receive(name))
	}
}

func (s *script) receiveBetween() {
	if name := s.pick(func(c *caller) bool { return pending(c) && !c.parked }); name != "" {
		s.make(receiveBetween(name))
	}
}

// forget drops a channel. One with a result is kept.
func (s *script) forget() {
	if name := s.pick(func(c *caller) bool { return pending(c) && !c.parked && !c.between && !c.boxed }); name != "" {
		s.make(forget(name))
	}
}

func (s *script) stop() {
	if name := s.pick(func(c *caller) bool { return c.parked }); name != "" {
		s.make(stop(name))
	}
}

// look looks at a result that was received, perhaps just now.
func (s *script) look() {
	if name := s.pick(func(c *caller) bool { return c.waiter.Future && (c.received || c.boxed) && !c.looked && !c.gone }); name != "" {
		s.callers[name].looked = true
		s.make(look(name))
	}
}

// holds reports whether the caller may unlock its lease.
func holds(c *caller) bool {
	return c.waiter.Stage == machine.Claimed && (!c.waiter.Future || c.looked)
}

func (s *script) unlock() {
	if name := s.pick(holds); name != "" {
		s.make(unlock(name))
	}
}

func (s *script) join() {
	other := s.pick(func(c *caller) bool { return holds(c) && c.lease.Err == nil && c.terms.Mode != store.Permits })
	if other == "" {
		return
	}
	name := fmt.Sprintf("c%d", len(s.callers))
	var changes []with
	if s.bool("future") {
		changes = []with{future}
	}
	s.makeUnlessRefused(name, join(name, other, changes...))
}

func (s *script) renew() {
	by := rapid.SampledFrom([]time.Duration{time.Second, ttl, time.Minute}).Draw(s.T, "by")
	if name := s.pick(holds); name != "" {
		s.make(renew(name, by))
	}
}

func (s *script) passTime() {
	s.now = s.now.Add(rapid.SampledFrom([]time.Duration{
		time.Microsecond, ms, 50 * ms, 400 * ms, time.Second, 3 * time.Second, ttl,
	}).Draw(s.T, "time"))
}

// alarmDue lets the time pass up to the alarm, and sees that alarms of this time come to an end.
func (s *script) alarmDue() {
	if s.alarm == 0 {
		return
	}
	s.now = max(s.now, s.alarm)
	for n := 0; s.alarm != 0 && s.alarm <= s.now; n++ {
		if s.make(alarm); n == 100 {
			s.Fatalf("in the state %s the alarm goes off again and again", s.state())
		}
	}
}

// deadline stops the process up to the end of the lease: its alarm comes late.
func (s *script) deadline() {
	if _, _, held := s.key.Held(); held && s.mode == store.Exclusive {
		s.now = max(s.now, s.key.Until(s.last))
	}
}

func (s *script) notify() {
	kinds := []store.EventKind{store.EventWake, store.EventQueued, store.EventRequested, store.EventForced, store.EventLost}
	i := rapid.IntRange(0, len(kinds)+1).Draw(s.T, "kind")
	switch {
	case s.host.live == "": // the shell has no such key
	case i >= len(kinds):
		s.make(missed(i == len(kinds)))
	default:
		owner := s.host.live
		s.make(event(kinds[i]))
		if want := kinds[i] == store.EventQueued || kinds[i] == store.EventRequested; want && s.wanted == 0 && s.host.live == owner && s.held[owner] {
			s.wanted = s.now
		}
	}
}

// message delivers a grant by message. It may be as old as the owner.
func (s *script) message() {
	owner := s.host.live
	if _, asked := s.begun[owner]; !asked {
		return
	}
	if s.tokens[owner] == 0 || s.bool("granted anew") {
		s.tokens[owner] = s.next()
	}
	e := store.Event{Kind: store.EventGrant, Owner: owner, Grant: s.grant(owner, s.weights[owner]), GrantTTL: grantTTL}
	if !s.held[owner] {
		s.prove(owner, s.begun[owner], grantTTL)
	}
	s.make(notify(e))
}

func (s *script) grant(owner string, weight int32) store.Grant {
	token := s.tokens[owner]
	follow := token <= int64(s.now)/int64(time.Microsecond) && s.bool("tokens follow the clock")
	return store.Grant{Token: token, TokensFollowClock: follow, Weight: weight}
}

// prove notes that the store has set this TTL after sent.
func (s *script) prove(owner string, sent watchdog.Instant, of time.Duration) {
	s.proven[owner] = max(s.proven[owner], sent.Add(of-of/100-5*ms-of/10))
}

// sorted returns the requests that are under way, in the order in which they were sent.
func (s *script) sorted() (calls []int) {
	for i, a := range s.acquires {
		if s.open[a] {
			calls = append(calls, i+1)
		}
	}
	return calls
}

func (s *script) answer() {
	calls := s.sorted()
	if len(calls) == 0 {
		return
	}
	n := rapid.SampledFrom(calls).Draw(s.T, "request")
	call := s.acquires[n-1]
	q := call.Request()
	var reply store.AcquireReply
	switch rapid.SampledFrom([]string{"granted", "granted", "refused", "withdrawn", "full", "no answer", "unreachable", "final"}).Draw(s.T, "answer") {
	case "granted":
		if s.tokens[q.Owner] == 0 || s.bool("granted anew") {
			s.tokens[q.Owner] = s.next()
		}
		reply = store.AcquireReply{Status: store.Granted, Grant: s.grant(q.Owner, q.Share.Weight+q.Extra), WillNotify: true}
		if q.Share.Mode == store.Permits {
			reply.Limit = q.Share.Limit
		}
		s.prove(q.Owner, call.Sent, q.TTL)
	case "refused":
		reply = store.AcquireReply{Status: store.Waiting, Mark: s.counter, Rank: 1, Remaining: -1, WillNotify: true}
		if s.bool("next in the queue") {
			reply.Rank, reply.Remaining = 0, rapid.SampledFrom([]time.Duration{-1, 0, 20 * ms, time.Second}).Draw(s.T, "remaining")
		}
		s.begun[q.Owner] = max(s.begun[q.Owner], call.Sent)
		if !q.Wait {
			reply = store.AcquireReply{Status: store.Held, HolderNotified: s.bool("holder notified")}
		}
	case "withdrawn":
		reply.Status = store.Withdrawn
	case "full":
		reply.Status = store.Full
	case "no answer":
		reply.Err = store.ErrOutcomeUnknown
	case "unreachable":
		reply.Err = store.ErrUnreachable
	case "final":
		reply.Err = store.ErrForeignData
	}
	delete(s.open, call)
	releases := len(s.releases)
	s.make(answer(n, reply))
	if s.mode == store.Exclusive && reply.Status == store.Granted && !s.held[q.Owner] && !s.released(q.Owner, releases) {
		s.Errorf("request %d of %s was granted, and the key is neither held nor given back", n, q.Owner)
	}
}

// released reports whether one of the releases from that one on is of the owner.
func (s *script) released(owner string, from int) bool {
	return slices.ContainsFunc(s.releases[from:], func(r *machine.Release) bool { return r.Request().Owner == owner })
}

func (s *script) answerRenewal() {
	if len(s.waiting) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.waiting)-1).Draw(s.T, "renewal")
	r := s.waiting[i]
	var reply store.RenewReply
	switch rapid.SampledFrom([]string{"renewed", "renewed", "late", "no answer", "lost"}).Draw(s.T, "answer") {
	case "renewed":
		s.prove(r.Request.Owner, r.Sent, r.Request.TTL)
		reply.Waiters = rapid.IntRange(0, 2).Draw(s.T, "waiters")
		if s.mode == store.Permits {
			reply.Limit = rapid.Int32Range(2, 4).Draw(s.T, "limit")
		}
	case "late":
		s.make(late(slices.Index(s.renewals, r) + 1))
		return
	case "no answer":
		reply.Err = store.ErrOutcomeUnknown
	case "lost":
		reply.Err = store.ErrStolen
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.make(renewed(slices.Index(s.renewals, r)+1, reply))
}

func (s *script) left() {
	if s.host.leaving > 0 {
		s.make(rapid.SampledFrom([]input{left, left, leftUnknown}).Draw(s.T, "answered"))
	}
}

// triesEnd checks that who never waits waits for the store only.
func (s *script) triesEnd() {
	for name, c := range s.callers {
		if w := &c.waiter; w.Try && w.Stage == machine.Queued && !s.key.Answering() && s.host.leaving == 0 {
			s.Errorf("%s never waits, and waits in the state %s", name, s.state())
		}
	}
}

// promises checks what must hold after each step.
func (s *script) promises() {
	s.tokensRise()
	s.futuresLie()
	if _, _, held := s.key.Held(); held && s.last.Err == nil {
		s.lasts(s.last)
	}
}

// tokensRise checks that no two callers have seen the same token.
func (s *script) tokensRise() {
	for _, c := range s.order {
		l, w := c.lease, &c.waiter
		if w.Stage != machine.Claimed || s.counted[l] || l.Joined() {
			continue
		}
		s.counted[l] = true
		if l.Token <= s.largest {
			s.Errorf("%s has token %d, and one before has had %d", c.name, l.Token, s.largest)
		}
		s.largest = l.Token
	}
}

// futuresLie checks what lies: somebody has it at most, and it gets to who wants it.
func (s *script) futuresLie() {
	owners, lies, receives := 0, false, false
	for _, c := range s.order {
		l, w := c.lease, &c.waiter
		if (w.Stage == machine.Claimed || w.Stage == machine.Lying && c.received) && l.Err == nil && !l.Joined() {
			owners++
		}
		lies = lies || w.Stage == machine.Lying && c.boxed && !l.Joined()
		receives = receives || c.parked && w.Stage == machine.Idle && *w.Terms == terms()
	}
	if !lies {
		s.lain = 0
	} else if s.lain == 0 {
		s.lain = s.now
	}
	due := s.alarm != 0 && s.alarm <= s.now
	switch {
	case owners > 1, owners == 1 && lies:
		s.Errorf("%d have the key, and it lies: %t", owners, lies)
	case !lies || due:
	case s.wanted != 0 && s.now > max(s.wanted, s.lain).Add(100*ms):
		s.Errorf("the key lies since %s, and others want it since %s", s.since(s.lain), s.since(s.wanted))
	case receives && *s.lying().waiter.Terms == terms() && s.alarm.Sub(s.now) > 50*ms:
		s.Errorf("the key lies, and somebody else receives, who is looked for at %s", s.since(s.alarm))
	}
}

// lying returns the caller with whom the key lies.
func (s *script) lying() *caller {
	return s.order[slices.IndexFunc(s.order, func(c *caller) bool {
		return c.waiter.Stage == machine.Lying && c.boxed && !c.lease.Joined()
	})]
}

// lasts checks a lease that has not ended yet. If its deadline has passed, it must end as soon as anybody
// looks.
func (s *script) lasts(l *machine.Lease) {
	until := s.key.Until(l)
	if until > s.proven[s.host.live] {
		s.Errorf("%s is trusted until %s, and the store has promised until %s", s.host.live, s.since(until), s.since(s.proven[s.host.live]))
	}
	if s.now < until && s.over == l {
		s.Errorf("a lease that was over lasts until %s", s.since(until))
	}
	if s.now < until {
		return
	}
	s.over = l
	if callerOf(l.Caller).waiter.Stage == machine.Claimed && s.bool("look") {
		s.make(check(callerOf(l.Caller).name, 0))
		if l.Err == nil {
			s.Errorf("a lease lasts past its deadline %s", s.since(until))
		}
	}
}

// end closes the client, and checks that nothing and nobody is left.
func (s *script) end() {
	s.make(closing)
	s.make(turnAway)
	for _, name := range slices.Sorted(maps.Keys(s.callers)) {
		if c := s.callers[name]; c.waiter.Future && c.received && !c.looked {
			c.looked = true
			s.make(look(name))
		}
	}
	if _, _, held := s.key.Held(); held {
		s.make(abandon)
	}
	for _, n := range s.sorted() {
		s.make(answer(n, failed(store.ErrOutcomeUnknown)))
	}
	if machine.NoTiesChanged() {
		s.Errorf("a lease has written ties that are not its own")
	}
	if !s.key.IsUnused() || s.host.live != "" || s.host.dropped != s.host.owners {
		s.Errorf("in the end: %s, owner %q, %d owners of %d were dropped", s.state(), s.host.live, s.host.dropped, s.host.owners)
	}
	for name, c := range s.callers {
		s.oneResult(name, c)
	}
}

func (s *script) oneResult(name string, c *caller) {
	w := &c.waiter
	if w.Stage != machine.Claimed && w.Stage != machine.Ended {
		s.Errorf("%s has no result: stage %d", name, w.Stage)
	}
	if (w.Err != nil) == (w.Stage == machine.Claimed) && w.Since != 0 {
		s.Errorf("%s: stage %d, and the error %v", name, w.Stage, w.Err)
	}
	switch {
	case w.Future && w.Since != 0 && c.received == c.boxed:
		s.Errorf("%s: its result was received: %t, and is in its channel: %t", name, c.received, c.boxed)
	case c.decided != 1 && w.Since != 0:
		s.Errorf("%s was told %d results, want one", name, c.decided)
	}
	if l := c.lease; l != nil && l.Err == nil {
		s.Errorf("the lease of %s lasts for ever", name)
	}
}
