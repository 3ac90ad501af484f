// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
)

// A candidate leads in turn with another one. Each has a client of its own.
type candidate struct {
	// lead waits for the candidate's next term. It returns when it began, and its number, which is larger
	// than that of any before.
	lead func(ctx context.Context) passed
	// waits returns when this candidate waits for the end of the other's term.
	waits  func(ctx context.Context)
	resign func(ctx context.Context) error
}

// A passed is one change of the leader.
type passed struct {
	resigned, began time.Time
	term            int64
}

// A succession is candidates that follow each other.
type succession struct {
	them   [2]candidate
	leader int
	term   int64 // the leader's
}

func (s *stage) succession(ctx context.Context) *succession {
	t := new(succession)
	if s.peer.name == etcdName {
		var last int64
		for i := range t.them {
			t.them[i] = s.etcdCandidate(&last)
		}
	} else {
		clients := []*asynclock.Client{s.asynclock(), s.asynclock()}
		s.after(t.end)
		campaigning := s.life(ctx)
		for i, c := range clients {
			t.them[i] = ourCandidate(campaigning, c, s.key, i)
			until(ctx, func() bool { return must(c.Inspect(ctx, s.key)).Held }) // the first term is the first candidate's
		}
	}
	t.term = t.them[0].lead(ctx).term
	return t
}

// end gives the last term back, for which the leader's client would wait.
func (t *succession) end(ctx context.Context) error {
	if t.term == 0 {
		return nil // nobody has led
	}
	return t.them[t.leader].resign(ctx)
}

// pass has the leader resign, and the other lead.
func (t *succession) pass(ctx context.Context) (p passed) {
	now, next := t.them[t.leader], t.them[1-t.leader]
	wait := beside(func() { p = next.lead(ctx) })
	next.waits(ctx)
	time.Sleep(rest)
	resigned := time.Now()
	check(now.resign(ctx))
	wait()
	t.leader = 1 - t.leader
	p.resigned = resigned
	return p
}

// passes has them follow each other, for three seconds at most.
func (t *succession) passes(ctx context.Context, n int, each func(p passed)) {
	const enough = 3 * time.Second
	for i, begin := 0, time.Now(); i == 0 || i < n && time.Since(begin) < enough; i++ {
		each(t.pass(ctx))
	}
}

// ourCandidate campaigns by asynclock.
func ourCandidate(campaigning context.Context, c *asynclock.Client, key string, i int) candidate {
	terms := elect.Campaign(campaigning, c, key, elect.WithValue(fmt.Append(nil, "candidate ", i)))
	var term *elect.Term
	return candidate{
		lead: func(ctx context.Context) passed {
			select {
			case e, open := <-terms:
				if !open {
					check(asynclock.ErrClosed)
				}
				var err error
				term, err = e.Term()
				at := time.Now()
				check(err)
				return passed{began: at, term: term.Token()}
			case <-ctx.Done():
				check(ctx.Err())
			}
			return passed{}
		},
		waits: func(ctx context.Context) {
			until(ctx, func() bool { return must(c.Inspect(ctx, key)).Waiters > 0 })
		},
		resign: func(ctx context.Context) error { return term.Resign(ctx) },
	}
}

// etcdCandidate campaigns by etcd's elections. A term's number is its value.
func (s *stage) etcdCandidate(last *int64) candidate {
	e := s.dialEtcd()
	election := concurrency.NewElection(e.session(), "/"+s.key)
	return candidate{
		lead: func(ctx context.Context) passed {
			*last++
			term := *last
			check(election.Campaign(ctx, strconv.FormatInt(term, 10)))
			return passed{began: time.Now(), term: term}
		},
		// That can't be seen, and etcd notifies a waiter at once only after a tenth of a second.
		waits:  func(context.Context) { time.Sleep(etcdPeer.is.settles) },
		resign: election.Resign,
	}
}

func (s *stage) dialEtcd() *etcdClient {
	e := new(etcdClient).dial(s.world)
	s.after(e.close)
	return e
}

// terms is the time from the end of a leadership to the next.
func terms(size sizes) prepare {
	return func(ctx context.Context, s *stage) round {
		t := s.succession(ctx)
		return func(ctx context.Context) []float64 {
			var times []float64
			t.passes(ctx, size.passes, func(p passed) { times = append(times, micros(p.began.Sub(p.resigned))) })
			return summarize(times)
		}
	}
}

func termsInJava(size sizes) prepare {
	return func(ctx context.Context, s *stage) round {
		p := s.javaPeer(ctx)
		p.ask(ctx, "terms", size.warm, 0)
		return func(ctx context.Context) []float64 {
			return summarize(p.ask(ctx, "terms", size.passes, int(rest.Milliseconds())))
		}
	}
}

// observed is the time until everybody knows who leads now.
func observed(size sizes) prepare {
	return func(ctx context.Context, s *stage) round {
		t := s.succession(ctx)
		sights := make(chan sight, 100*size.observers) // more than come between two rounds
		observe := s.observe
		if s.peer.name == etcdName {
			observe = s.observeEtcd
		}
		for i := range size.observers {
			observe(ctx, func(term int64) { sights <- sight{i, term, time.Now()} })
		}
		return func(ctx context.Context) []float64 {
			var times []float64
			t.passes(ctx, size.passes/5, func(p passed) { times = append(times, p.saw(ctx, sights, size.observers)...) })
			return quantiles(times, 0.99, 0.5)
		}
	}
}

// observe makes one more client. It calls see for each term that the client is told of.
func (s *stage) observe(ctx context.Context, see func(term int64)) {
	c := s.asynclock()
	seen := must(elect.Observe(s.life(ctx), c, s.key))
	go func() { // ends with the stage
		for leader := range seen {
			see(leader.Token)
		}
	}()
}

func (s *stage) observeEtcd(ctx context.Context, see func(term int64)) {
	own := s.dialEtcd().session()
	seen := concurrency.NewElection(own, "/"+s.key).Observe(s.life(ctx))
	go func() { // ends with the stage
		for r := range seen {
			for _, kv := range r.Kvs {
				if term, err := strconv.ParseInt(string(kv.Value), 10, 64); err == nil {
					see(term)
				}
			}
		}
	}()
}

// A sight is that an observer has seen a term.
type sight struct {
	observer int
	term     int64
	at       time.Time
}

// saw waits until all saw the term, and returns how long after the resignation each did.
func (p passed) saw(ctx context.Context, sights <-chan sight, observers int) (times []float64) {
	seen := make(map[int]bool)
	for len(seen) < observers {
		select {
		case s := <-sights:
			if s.term == p.term && !seen[s.observer] {
				seen[s.observer], times = true, append(times, millis(s.at.Sub(p.resigned)))
			}
		case <-ctx.Done():
			check(ctx.Err())
		}
	}
	return times
}
