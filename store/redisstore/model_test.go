// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A model is what the scripts do, said once more in Go and without Redis: one
// lock, whose clock is now.
type model struct {
	now     time.Duration // since the epoch
	holder  *modelHolder
	queue   []modelWaiter // by ticket
	counter int64
	gone    map[string]time.Duration // until when
	told    []string                 // messages to clients that listen
}

type modelHolder struct {
	owner, address string
	description    string
	token          int64
	until          time.Duration
	clocked        bool
	watches
}

type modelWaiter struct {
	owner, address string
	ticket         int64
	deadline       time.Duration
	grantTTL       time.Duration
	watches
}

// watches are what a request wants its holder to hear.
type watches struct{ watch, wanted bool }

func watchesOf(q *store.AcquireRequest) watches {
	return watches{q.NotifyQueued, q.NotifyRequests}
}

// The addresses that clients give. listening has a subscriber, lost has none
// (any more), silent can't be told.
var listening, lost, silent = "p" + uuid.NewString(), "p" + uuid.NewString(), noAddress

func (m *model) micros() int64 { return m.now.Microseconds() }

// step begins a script: what has expired is gone.
func (m *model) step() {
	if m.holder != nil && m.holder.until <= m.now {
		m.holder = nil
	}
}

func (m *model) last() int64 {
	if m.holder != nil {
		return max(m.counter, m.holder.token)
	}
	return m.counter
}

func (m *model) tell(address, format string, args ...any) {
	if address == listening {
		m.told = append(m.told, fmt.Sprintf(format, args...))
	}
}

func (m *model) grant(last int64, owner, address string, ttl time.Duration, what watches) {
	m.counter = max(last+1, m.micros())
	m.holder = &modelHolder{
		owner: owner, address: address, description: owner, token: m.counter, until: m.now + ttl, clocked: m.counter == m.micros(), watches: what,
	}
}

// pass gives the key to the first waiter before the ticket that lives and can be
// told; those before it leave the queue.
func (m *model) pass(last int64, self string, ticket int64) (passed bool) {
	for len(m.queue) > 0 {
		w := m.queue[0]
		if w.owner == self {
			m.queue = m.queue[1:]
			return false
		}
		if ticket > 0 && ticket < w.ticket {
			return false
		}
		m.queue = m.queue[1:]
		if m.lives(w) && w.address != lost {
			m.grant(last, w.owner, w.address, w.grantTTL, w.watches)
			m.tell(w.address, "g %s %d %d %d %d", w.owner, m.holder.token, w.grantTTL.Milliseconds(), len(m.queue), btoi(m.holder.clocked))
			return true
		}
	}
	return false
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (m *model) find(owner string) int {
	return slices.IndexFunc(m.queue, func(w modelWaiter) bool { return w.owner == owner })
}

func (m *model) acquire(q store.AcquireRequest, address string) (r store.AcquireReply) {
	granted := func() store.AcquireReply {
		return store.AcquireReply{
			Status: store.Granted, Grant: store.Grant{Token: m.holder.token, TokensFollowClock: m.holder.clocked}, Waiters: len(m.queue),
		}
	}
	if m.holder != nil && m.holder.owner == q.Owner {
		m.holder.until = max(m.holder.until, m.now+q.TTL)
		return granted()
	}
	if until, ok := m.gone[q.Owner]; ok && until > m.now {
		return store.AcquireReply{Status: store.Withdrawn}
	}
	ticket, place := q.Ticket, m.find(q.Owner)
	if place >= 0 {
		ticket = m.queue[place].ticket
	}
	if m.holder == nil && !m.pass(m.counter, q.Owner, ticket) {
		m.grant(m.counter, q.Owner, address, q.TTL, watchesOf(&q))
		return granted()
	}
	remaining := m.holder.until - m.now
	if !q.Wait {
		return store.AcquireReply{
			Status: store.Held, Holder: m.holder.description, HolderToken: m.holder.token, Remaining: remaining, Waiters: len(m.queue),
			HolderNotified: m.tellWanted(),
		}
	}
	place = m.find(q.Owner)
	if place < 0 {
		if ticket == 0 && q.QueueLimit > 0 && len(m.queue) >= q.QueueLimit {
			m.queue = m.living()
			if len(m.queue) >= q.QueueLimit {
				return store.AcquireReply{Status: store.Full, Waiters: len(m.queue)}
			}
		}
		if ticket == 0 {
			m.counter = max(m.last()+1, m.micros())
			ticket = m.counter
		}
		if len(m.queue) == 0 && m.holder.watch {
			m.tell(m.holder.address, "c %s", m.holder.owner)
		}
		m.queue = append(m.queue, modelWaiter{owner: q.Owner, ticket: ticket})
		slices.SortFunc(m.queue, func(a, b modelWaiter) int {
			return cmp.Or(cmp.Compare(a.ticket, b.ticket), cmp.Compare(a.owner, b.owner))
		})
		place = m.find(q.Owner)
	}
	w := &m.queue[place]
	w.address, w.deadline, w.grantTTL, w.watches = address, m.now+q.WaiterTTL, q.GrantTTL, watchesOf(&q)
	if place == 0 {
		m.tellWanted()
	}
	return store.AcquireReply{
		Status: store.Waiting, Holder: m.holder.description, HolderToken: m.holder.token,
		Rank: place, Remaining: remaining, Ticket: ticket, Mark: m.last(),
	}
}

func (m *model) tellWanted() bool {
	if !m.holder.wanted || m.holder.address == noAddress {
		return false
	}
	m.tell(m.holder.address, "w %s", m.holder.owner)
	return true
}

func (m *model) release(q store.ReleaseRequest, address string) (r store.ReleaseReply) {
	if m.holder != nil && m.holder.owner == q.Owner {
		r.WasHeld = true
		used := max(q.Token, m.holder.token)
		last := max(m.last(), used)
		if q.HoldBack > 0 {
			m.counter = last
			m.holder = &modelHolder{owner: "-", address: noAddress, description: m.holder.description, token: used, until: m.now + q.HoldBack}
			m.wake()
		} else if !m.pass(last, "", 0) {
			m.holder, m.counter = nil, last
		}
	} else {
		r.Cause = m.renew(store.RenewRequest{Owner: q.Owner}).Err
		if i := m.find(q.Owner); i >= 0 {
			m.queue = slices.Delete(m.queue, i, i+1)
			if i == 0 && m.holder != nil && m.holder.owner == "-" {
				m.wake()
			}
		}
	}
	if q.Uncertain {
		m.gone[q.Owner] = m.now + 2*time.Minute
	}
	if q.Requeue != nil {
		again := m.acquire(*q.Requeue, address)
		r.Requeue = &again
	}
	return r
}

func (m *model) living() []modelWaiter {
	return slices.DeleteFunc(slices.Clone(m.queue), func(w modelWaiter) bool { return !m.lives(w) })
}

// wake tells the first waiter that lives and can be told to ask again. Those before it leave.
func (m *model) wake() {
	i := slices.IndexFunc(m.queue, func(w modelWaiter) bool { return m.lives(w) && w.address != lost })
	if i >= 0 {
		m.queue = slices.Delete(m.queue, 0, i)
		m.tell(m.queue[0].address, "a %s", m.queue[0].owner)
	}
}

func (m *model) lives(w modelWaiter) bool { return w.deadline.Milliseconds() >= m.now.Milliseconds() }

func (m *model) renew(q store.RenewRequest) store.RenewReply {
	switch {
	case m.holder == nil || m.holder.owner == "-":
		return store.RenewReply{Err: store.ErrExpired}
	case m.holder.owner != q.Owner:
		return store.RenewReply{Err: store.ErrStolen}
	}
	m.holder.until = max(m.holder.until, m.now+q.TTL)
	if q.Token > m.holder.token {
		m.holder.token = q.Token
		m.counter = max(m.counter, q.Token)
	}
	m.holder.watch = m.holder.watch || q.NotifyQueued
	return store.RenewReply{Waiters: len(m.queue)}
}

func (m *model) force() bool {
	if m.holder == nil {
		return false
	}
	old, last := *m.holder, m.last()
	if old.clocked {
		last = max(last, m.micros()) + (old.until-m.now).Milliseconds()*1000
	}
	if !m.pass(last, "", 0) {
		m.holder, m.counter = nil, last
	}
	m.tell(old.address, "r %s", old.owner)
	return true
}

// On miniredis the clock is the test's. Times are multiples of 10 ms and TTLs are
// not, so that nothing ends at the very moment of a step.
func TestScriptsDoAsTheModelOnMiniredis(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	compare(t, sv, 10*time.Millisecond, time.Millisecond, func(string) model {
		return model{now: time.Duration(sv.clock(t)) * time.Microsecond}
	})
}

// On a real server no time passes, compared with the TTLs, and the counter is far
// ahead of the clock, so that all numbers are known.
func TestScriptsDoAsTheModelOnRedis(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	sv.Pass = nil
	compare(t, sv, 1000*time.Second, 1000*time.Second, func(key string) model {
		m := model{now: time.Duration(sv.clock(t)) * time.Microsecond}
		m.counter = m.micros() + 1e15
		sv.Do(t, "SET", sv.redisKey(key, 'f'), fmt.Sprint(m.counter))
		return m
	})
}

// compare runs the scripts and the model side by side. TTLs are multiples of
// unit, and a half; times to go are compared in multiples of precision.
func compare(t *testing.T, sv *server, unit, precision time.Duration, newModel func(key string) model) {
	t.Helper()
	st := sv.store(t)
	heard := sv.subscribe(t, func(b rueidis.Builder) rueidis.Completed { return b.Subscribe().Channel(listening[1:]).Build() })
	c := join(t, st)
	c.Hold("another key", "a") // so that miniredis has said that it has no history
	s, g := c.session, st.guard("another key")
	runs := 0

	rapid.Check(t, func(t *rapid.T) {
		runs++
		key := fmt.Sprintf("key%d", runs)
		initial := newModel(key)
		m := &initial
		m.gone = make(map[string]time.Duration)
		ctx := context.Background()
		tickets := make(map[string]int64)

		owners := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		addresses := rapid.SampledFrom([]string{listening, listening, lost, silent})
		ttl := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 30).Draw(t, "ttl"))*unit + unit/2
		})
		newRequest := func(t *rapid.T) store.AcquireRequest {
			q := store.AcquireRequest{
				Key: key, Owner: owners.Draw(t, "owner"), TTL: ttl.Draw(t, "TTL"), GrantTTL: ttl.Draw(t, "grant TTL"), WaiterTTL: ttl.Draw(t, "liveness"),
				Wait: rapid.Bool().Draw(t, "wait"), QueueLimit: rapid.IntRange(0, 4).Draw(t, "limit"), NotifyQueued: rapid.Bool().Draw(t, "watch"),
				NotifyRequests: rapid.Bool().Draw(t, "want to hear"),
			}
			if rapid.Bool().Draw(t, "bring the ticket") {
				q.Ticket = tickets[q.Owner]
			}
			q.Description = q.Owner
			return q
		}
		token := func(t *rapid.T) int64 {
			m.step()
			if m.holder == nil {
				return rapid.Int64Range(0, 10).Draw(t, "token")
			}
			return m.holder.token + rapid.Int64Range(-10, 100_000).Draw(t, "tokens used")
		}
		check := func(t *rapid.T, what string, got, want any) {
			t.Helper()
			if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
				t.Fatalf("%s: got\n%s, want\n%s", what, g, w)
			}
		}
		round := func(r store.AcquireReply) store.AcquireReply {
			r.Remaining = r.Remaining.Truncate(precision)
			return r
		}
		actions := map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				q, address := newRequest(t), addresses.Draw(t, "address")
				var c call
				if err := c.acquire(sv.prefix, &q, address, g); err != nil {
					t.Fatal(err)
				}
				r := newReply(st.runOne(ctx, &c))
				got := r.acquireReply()
				m.step()
				check(t, fmt.Sprintf("acquire %+v from %s", q, address), round(got), round(m.acquire(q, address)))
				if got.Status == store.Waiting {
					tickets[q.Owner] = got.Ticket
				}
			},
			"release": func(t *rapid.T) {
				q, address := store.ReleaseRequest{Key: key, Owner: owners.Draw(t, "owner"), Token: max(token(t), 0)}, addresses.Draw(t, "address")
				switch rapid.IntRange(0, 5).Draw(t, "how") {
				case 0:
					q.HoldBack = ttl.Draw(t, "keep")
				case 1:
					q.Uncertain = true
				case 2:
					again := newRequest(t)
					q.Requeue = &again
				}
				var got store.ReleaseReply
				if q.Clean = q.Requeue == nil && rapid.Bool().Draw(t, "first"); q.Clean {
					got = s.Release(ctx, []store.ReleaseRequest{q})[0]
				} else {
					var c call
					if err := c.release(sv.prefix, &q, address, g); err != nil {
						t.Fatal(err)
					}
					got, _ = s.releaseReply(&q, st.runOne(ctx, &c), listening)
				}
				m.step()
				want := m.release(q, address)
				if got.Requeue != nil {
					got.Requeue.WillNotify = false // the session's part, not the scripts'
				}
				if got.Requeue != nil && want.Requeue != nil {
					check(t, fmt.Sprintf("requeue %+v from %s", *q.Requeue, address), round(*got.Requeue), round(*want.Requeue))
					if got.Requeue.Status == store.Waiting {
						tickets[q.Requeue.Owner] = got.Requeue.Ticket
					}
				}
				got.Requeue, want.Requeue = nil, nil
				check(t, fmt.Sprintf("release %+v", q), got, want)
			},
			"renew": func(t *rapid.T) {
				q := store.RenewRequest{Key: key, Owner: owners.Draw(t, "owner"), TTL: ttl.Draw(t, "TTL"), Token: max(token(t), 0), NotifyQueued: rapid.Bool().Draw(t, "watch")}
				got := s.Renew(ctx, []store.RenewRequest{q})[0]
				m.step()
				check(t, fmt.Sprintf("renew %+v", q), got, m.renew(q))
			},
			"force": func(t *rapid.T) {
				got, err := s.Force(ctx, key, 0)
				if err != nil {
					t.Fatal(err)
				}
				m.step()
				check(t, "force", got, m.force())
			},
			"": func(t *rapid.T) {
				info, err := s.Inspect(ctx, key)
				if err != nil {
					t.Fatal(err)
				}
				m.step()
				living := m.living()
				want := store.Info{Key: key, Waiters: len(living), Held: m.holder != nil}
				if m.holder != nil {
					want.Holder, want.Token, want.Remaining = m.holder.description, m.holder.token, (m.holder.until - m.now).Truncate(precision)
				}
				got := info
				got.Queue, got.Remaining = nil, got.Remaining.Truncate(precision)
				check(t, "inspect", got, want)
				if left := sv.vacancyIn(t, key); left > 0 {
					check(t, "vacancy", left, m.counter)
				}
				for i, w := range info.Queue {
					check(t, "queue", w.Holder, living[i].owner)
				}
				for _, want := range m.told {
					check(t, "message", (<-heard).Message, want)
				}
				m.told = nil
			},
		}
		if sv.Pass != nil {
			actions["time"] = func(t *rapid.T) {
				d := time.Duration(rapid.IntRange(1, 20).Draw(t, "units")) * unit
				sv.Pass(d)
				m.now += d
			}
		}
		t.Repeat(actions)
	})
	select {
	case extra := <-heard:
		t.Errorf("got message %q, want none", extra.Message)
	default:
	}
}
