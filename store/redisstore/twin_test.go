// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Owners that take all of a key, or a share, ask this store and memstore for the same, step by step.
// Both answer the same, except for the numbers. Their clock is that of the bubble.
func TestSharesAsInMemoryOnMiniredis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := join(t, inBubble(t))
		tw := twins{unit: 10 * time.Millisecond, precision: time.Millisecond, pass: time.Sleep, settled: synctest.Wait}
		tw.check(t, redis.Client)
	})
}

// On a real server no time passes, compared with the TTLs.
func TestSharesAsInMemoryOnRedis(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	tw := twins{unit: 1000 * time.Second, precision: 1000 * time.Second, settled: func() {}}
	tw.check(t, join(t, sv.store(t)).Client)
}

// twins are how this store and memstore are compared. TTLs are multiples of unit, and a half; times
// to go are compared in multiples of precision.
type twins struct {
	unit, precision time.Duration
	pass            func(time.Duration) // lets time go by; nil: it does not
	settled         func()              // waits until all messages have arrived
}

func (tw twins) check(t *testing.T, redis *redistest.Client) {
	t.Helper()
	memory := redistest.Join(t, memstore.New(), store.EventResync, store.EventDisconnected)
	runs := 0
	rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { // a bubble has no deadline, which rapid would ask for
		runs++
		p := &twin{
			twins: tw, memory: memory, redis: redis, key: fmt.Sprintf("key%d", runs), run: runs,
			numbers: map[int64]int64{0: 0}, tickets: make(map[string][2]int64), tokens: make(map[string][2]int64), asked: make(map[string]store.AcquireRequest),
		}
		switch rapid.IntRange(0, 2).Draw(t, "what kind of a run") {
		case 0:
			p.greedy = true
		case 1:
			p.mortal = tw.pass != nil
		}
		actions := map[string]func(*rapid.T){
			"acquire": p.acquire, "acquire again": p.acquire, "release": p.release, "keep a part": p.rest,
			"renew": p.renew, "force": p.force, "limit": p.limit, "": p.inspect,
		}
		if tw.pass != nil {
			actions["time"] = p.time
		}
		t.Repeat(actions)
		p.leave(t)
	})
}

// A twin is one run: a key in both stores, which have to be alike.
type twin struct {
	twins

	memory, redis *redistest.Client
	key           string
	run           int
	lives         int             // of those who die
	greedy        bool            // some can use more permits; then nobody queues again, as it would matter who goes first
	mortal        bool            // some waiters die, so what counts the dead is not compared
	numbers       map[int64]int64 // tokens of memstore, and what they are here
	newest        int64           // of these
	tickets       map[string][2]int64
	asked         map[string]store.AcquireRequest
	tokens        map[string][2]int64 // of grants, by owner
}

// owner draws one of six. Each asks to be notified in its own way, and the last one may die.
func (p *twin) owner(t *rapid.T, what string) string {
	name := rapid.SampledFrom([]rune("abcdef")).Draw(t, what)
	if p.mortal && name == 'f' {
		return fmt.Sprintf("f%d-%d", p.lives, p.run) // who died does not come back, here it would have its old place
	}
	return fmt.Sprintf("%c-%d", name, p.run)
}

func (p *twin) ttl(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.IntRange(1, 30).Draw(t, what))*p.unit + p.unit/2
}

func share(t *rapid.T) (s store.Share, extra int32) {
	switch s.Mode = rapid.SampledFrom([]store.Mode{store.Exclusive, store.Shared, store.Shared, store.Permits, store.Permits}).Draw(t, "mode"); s.Mode {
	case store.Permits:
		s.Limit = rapid.SampledFrom([]int32{4, 4, 4, 3, 6}).Draw(t, "limit")
		s.Weight = rapid.Int32Range(1, min(s.Limit, 3)).Draw(t, "weight")
		extra = rapid.SampledFrom([]int32{0, 0, 1, 3}).Draw(t, "extra")
	default:
	}
	return s, extra
}

// request draws a request of an owner. A waiter goes on waiting.
func (p *twin) request(t *rapid.T, owner string) (memory, redis store.AcquireRequest) {
	q := store.AcquireRequest{
		Key: p.key, Owner: owner, TTL: p.ttl(t, "TTL"), GrantTTL: p.ttl(t, "grant TTL"), WaiterTTL: 1000 * p.unit,
		Wait: p.queued(owner) || rapid.IntRange(0, 3).Draw(t, "wait") > 0, Description: owner,
		NotifyQueued: owner[0]%2 == 0, NotifyRequests: owner[0]%3 == 0,
	}
	q.Share, q.Extra = share(t)
	if !p.greedy {
		q.Extra = 0
	}
	if p.mortal && owner[0] == 'f' {
		q.WaiterTTL = 2*p.unit + p.unit/2
	}
	p.asked[owner] = q
	memory, redis = q, q
	if q.Wait && rapid.Bool().Draw(t, "bring the ticket") {
		memory.Ticket, redis.Ticket = p.tickets[owner][0], p.tickets[owner][1]
	}
	return memory, redis
}

func (p *twin) queued(owner string) bool {
	return slices.ContainsFunc(p.memory.Inspect(p.key).Queue, func(w store.WaiterInfo) bool { return w.Holder == owner })
}

func (p *twin) holds(owner string) bool {
	info := p.memory.Inspect(p.key)
	return info.Holder == owner || slices.ContainsFunc(info.Holders, func(h store.HolderInfo) bool { return h.Holder == owner })
}

func (p *twin) acquire(t *rapid.T) {
	m, r := p.request(t, p.owner(t, "owner"))
	p.acquired(t, fmt.Sprintf("acquire %+v", m), m, r)
}

func (p *twin) acquired(t *rapid.T, what string, askM, askR store.AcquireRequest) {
	t.Helper()
	m, r := p.memory.Acquire(askM), p.redis.Acquire(askR)
	p.granted(t, what, askM.Owner, m.Grant, r.Grant)
	p.events(t, false)
	if m.Status == store.Waiting {
		p.tickets[askM.Owner] = [2]int64{m.Ticket, r.Ticket}
	}
	if r.Status == store.Waiting && r.Recheck != 0 {
		t.Fatalf("%s: got %+v, want that messages arrive", what, r)
	}
	m.HolderToken = p.shown(p.memory.Inspect(p.key).Mode, m.HolderToken, r.HolderToken)
	p.same(t, what, p.reply(m), p.reply(r))
}

// shown returns a token that memstore shows, as it is here. Of permits this store shows that of the latest grant,
// whose holder may have left.
func (p *twin) shown(mode store.Mode, memory, redis int64) int64 {
	if token := p.numbers[memory]; mode != store.Permits || redis < token || redis > p.newest {
		return token
	}
	return redis
}

// reply says all that is compared of a reply, with the numbers of this store.
func (p *twin) reply(r store.AcquireReply) string {
	if p.mortal {
		r.Waiters, r.Rank = 0, 0
	}
	return fmt.Sprintf("%d %d %d %q %d %v %d %d %v %v %v", r.Status, r.Limit, r.Weight, r.Holder, r.HolderToken, r.Remaining.Truncate(p.precision), r.Rank, r.Waiters,
		r.WillNotify, r.HolderNotified, r.Err)
}

// granted remembers which numbers stand for each other.
func (p *twin) granted(t *rapid.T, what, owner string, m, r store.Grant) {
	t.Helper()
	if m.Token != 0 && r.Token != 0 {
		p.tokens[owner] = [2]int64{m.Token, r.Token}
	}
	for _, n := range [][2]int64{{m.Token, r.Token}, {m.Fence, r.Fence}} {
		if before, known := p.numbers[n[0]]; known && before != n[1] {
			t.Fatalf("%s: got number %d, want %d as before", what, n[1], before)
		}
		p.numbers[n[0]], p.newest = n[1], max(p.newest, n[1])
	}
}

func (p *twin) same(t *rapid.T, what string, want, got any) {
	t.Helper()
	w, g := fmt.Sprint(want), fmt.Sprint(got)
	t.Logf("%s: %s", what, w)
	if w != g {
		t.Fatalf("%s: got\n%s, want as in memory\n%s", what, g, w)
	}
}

func (p *twin) release(t *rapid.T) {
	m := store.ReleaseRequest{Key: p.key, Owner: p.owner(t, "owner")}
	r := m
	var again store.AcquireRequest
	m.Clean = true
	switch rapid.IntRange(0, 6).Draw(t, "how") {
	case 0:
		m.HoldBack = p.ttl(t, "hold back")
	case 1:
		m.Uncertain, m.Clean = true, false
	case 2:
		if other := p.owner(t, "other"); other != m.Owner && !p.greedy && !p.holds(other) && !p.queued(other) {
			r.Requeue = new(store.AcquireRequest)
			again, *r.Requeue = p.request(t, other)
			again.Ticket, r.Requeue.Ticket = 0, 0 // at the tail
			if !again.Wait {                      // a share may fit beside one who goes first
				again.Share, r.Requeue.Share = store.Share{}, store.Share{}
			}
			m.Requeue, m.Clean = &again, false
		}
	}
	r.HoldBack, r.Uncertain, r.Clean = m.HoldBack, m.Uncertain, m.Clean
	p.released(t, m, r)
}

// rest keeps a part of what an owner may have.
func (p *twin) rest(t *rapid.T) {
	m := store.ReleaseRequest{Key: p.key, Owner: p.owner(t, "owner")}
	s, _ := share(t)
	if s.Mode == store.Exclusive {
		s.Mode = store.Shared
	}
	m.Rest = &s
	if s.Mode == store.Permits && rapid.Bool().Draw(t, "held back") {
		m.HoldBack = p.ttl(t, "hold back")
	}
	p.released(t, m, m)
}

func (p *twin) released(t *rapid.T, m, r store.ReleaseRequest) {
	t.Helper()
	what := fmt.Sprintf("release %+v", m)
	m.Token, r.Token = p.tokens[m.Owner][0], p.tokens[m.Owner][1]
	gotM := p.memory.Session.Release(context.Background(), []store.ReleaseRequest{m})[0]
	gotR := p.redis.Session.Release(context.Background(), []store.ReleaseRequest{r})[0]
	said := func(r store.ReleaseReply) string {
		if errors.Is(r.Err, store.ErrInvalidOption) {
			return "refused"
		}
		return fmt.Sprint(r.WasHeld, " ", r.Cause, " ", r.Err, " ", r.Requeue != nil && r.Requeue.Status == store.Granted, " ", r.Grant.Weight)
	}
	p.granted(t, what, m.Owner, gotM.Grant, gotR.Grant)
	if gotM.Requeue != nil && gotR.Requeue != nil { // what they say of others depends on who goes first
		p.granted(t, what, m.Requeue.Owner, gotM.Requeue.Grant, gotR.Requeue.Grant)
		p.tickets[m.Requeue.Owner] = [2]int64{gotM.Requeue.Ticket, gotR.Requeue.Ticket}
		p.same(t, what, gotM.Requeue.Weight, gotR.Requeue.Weight)
	}
	p.same(t, what, said(gotM), said(gotR))
	p.events(t, m.Requeue != nil)
}

func (p *twin) renew(t *rapid.T) {
	q := store.RenewRequest{Key: p.key, Owner: p.owner(t, "owner"), TTL: p.ttl(t, "TTL")}
	q.Share, _ = share(t)
	q.NotifyQueued = q.Owner[0]%2 == 0 && rapid.Bool().Draw(t, "watch")
	m := p.memory.Session.Renew(context.Background(), []store.RenewRequest{q})[0]
	r := p.redis.Session.Renew(context.Background(), []store.RenewRequest{q})[0]
	if p.mortal {
		m.Waiters, r.Waiters = 0, 0
	}
	p.same(t, fmt.Sprintf("renew %+v", q), m, r)
	p.events(t, false)
}

func (p *twin) force(t *rapid.T) {
	m, err := p.memory.Session.Force(context.Background(), p.key, 0)
	r, err2 := p.redis.Session.Force(context.Background(), p.key, 0)
	if err = cmp.Or(err, err2); err != nil {
		t.Fatal(err)
	}
	p.same(t, "force", m, r)
	p.events(t, false)
}

// limit stores how many permits there are, or forgets it.
func (p *twin) limit(t *rapid.T) {
	p.setLimit(t, rapid.SampledFrom([]int32{0, 1, 2, 3, 5, 8}).Draw(t, "limit"))
}

func (p *twin) setLimit(t *rapid.T, limit int32) {
	t.Helper()
	m := p.memory.Session.(store.LimitSession).SetLimit(context.Background(), p.key, limit)
	r := p.redis.Session.(store.LimitSession).SetLimit(context.Background(), p.key, limit)
	p.same(t, fmt.Sprint("limit ", limit), m, r)
	p.events(t, false)
}

// time passes. Then those who wait ask again, in their order, as clients do.
func (p *twin) time(t *rapid.T) {
	p.lives++
	p.pass(time.Duration(rapid.IntRange(1, 20).Draw(t, "units")) * p.unit)
	for _, w := range p.memory.Inspect(p.key).Queue {
		m := p.asked[w.Holder]
		r := m
		m.Ticket, r.Ticket = p.tickets[w.Holder][0], p.tickets[w.Holder][1]
		p.acquired(t, "ask again as "+w.Holder, m, r)
	}
}

func (p *twin) inspect(t *rapid.T) {
	m, r := p.memory.Inspect(p.key), p.redis.Inspect(p.key)
	m.Token = p.shown(m.Mode, m.Token, r.Token)
	for i := range m.Holders {
		m.Holders[i].Token = p.numbers[m.Holders[i].Token]
	}
	said := func(info store.Info) string {
		var holders, waiters []string
		for _, h := range info.Holders {
			holders = append(holders, fmt.Sprint(h.Holder, " ", h.Token, " ", h.Weight, " ", h.Remaining.Truncate(p.precision)))
		}
		slices.Sort(holders)
		for _, w := range info.Queue {
			waiters = append(waiters, w.Holder)
		}
		return fmt.Sprintf("%v %q %d %v %d mode %d, %d of %d, %d stored; %q; %q", info.Held, info.Holder, info.Token, info.Remaining.Truncate(p.precision),
			info.Waiters, info.Mode, info.Used, info.Limit, info.StoredLimit, holders, waiters)
	}
	p.same(t, "inspect", said(m), said(r))
}

// events compares what the clients were told in a step. With loose that is the grants only.
func (p *twin) events(t *rapid.T, loose bool) {
	t.Helper()
	p.settled()
	want := drain(p.memory, 0)
	expected := len(want)
	if p.pass != nil { // all have arrived; waiters would die while more were waited for
		expected = 0
	}
	got := drain(p.redis, expected)
	said := func(events []store.Event) (words []string) {
		for _, e := range events {
			switch {
			case e.Kind == store.EventGrant:
				words = append(words, fmt.Sprint("grant ", e.Owner, " ", e.Grant.Weight, " ", e.GrantTTL))
			case !loose && !p.mortal && e.Kind != store.EventWake: // memstore tells more than it must
				words = append(words, fmt.Sprint(e.Kind, " ", e.Owner))
			}
		}
		slices.Sort(words)
		return words
	}
	p.same(t, "events", said(want), said(got))
	for _, m := range want {
		for _, r := range got {
			if m.Kind == store.EventGrant && r.Kind == store.EventGrant && m.Owner == r.Owner {
				p.granted(t, "event", m.Owner, m.Grant, r.Grant)
			}
		}
	}
}

// drain returns the events that have come, after waiting for so many.
func drain(c *redistest.Client, n int) (events []store.Event) {
	for {
		select {
		case e := <-c.Events:
			events = append(events, e)
			continue
		default:
		}
		if len(events) >= n {
			return events
		}
		select {
		case e := <-c.Events:
			events = append(events, e)
		case <-time.After(20 * time.Second):
			return events
		}
	}
}

// leave ends a run: nobody has the key or waits for it, and all that was said is compared.
func (p *twin) leave(t *rapid.T) {
	p.setLimit(t, 0)
	for _, owner := range "abcdef" {
		m := store.ReleaseRequest{Key: p.key, Owner: fmt.Sprintf("%c-%d", owner, p.run)}
		p.released(t, m, m)
	}
}

// inBubble opens a store inside a synctest bubble.
func inBubble(t *testing.T) *Store {
	t.Helper()
	_, option := redistest.InBubble(t)
	st, err := Open(option, WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		st.Close()
		time.Sleep(time.Minute) // rueidis' last timers
	})
	return st
}
