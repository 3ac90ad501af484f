// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
)

const etcdName = "etcd"

// candidates are two that lead in turn. They have clients of their own.
type candidates interface {
	// lead waits for the candidate's next term. It returns when it began, and its number, which is larger
	// than that of any before.
	lead(ctx context.Context, candidate int) (began time.Time, term int64, err error)
	// waits returns when the other candidate waits for the end of this one's term.
	waits(ctx context.Context, other int) error
	resign(ctx context.Context, candidate int) error
	close(ctx context.Context) error
}

func openCandidates(ctx context.Context, a arena, name, key string) (candidates, error) {
	if name == etcdName {
		return newEtcdCandidates(a, key)
	}
	return newOurCandidates(ctx, a, key)
}

// terms is the time from the end of a leadership to the next.
func terms(size familySizes) (c comparison) {
	c.workload = workload{name: "election", title: "From Resign in one client to the term in another that is next", metrics: latencies}
	c.contestants = []contestant{
		{peer: peer{name: asynclockPeer.name, setting: "elect.Campaign, no options"}},
		{peer: peer{name: etcdName, setting: "etcd: concurrency.Election, a session per candidate, its data in memory"}, needs: etcdName},
		inCurator("selector", "Curator: LeaderSelector with autoRequeue"),
	}
	c.targets = []target{{of: bestPeer, limit: 1}}
	c.absent = "Redisson has no election"
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		them, err := openCandidates(ctx, a, p.name, c.key(p.name))
		if err != nil {
			return nil, err
		}
		t, err := newSuccession(ctx, them)
		return steps{func(ctx context.Context) ([]float64, error) {
			var times []float64
			for begin := time.Now(); len(times) == 0 || len(times) < size.passes && time.Since(begin) < enough; {
				passed, err := t.pass(ctx)
				if err != nil {
					return nil, err
				}
				times = append(times, micros(passed.began.Sub(passed.resigned)))
			}
			return summarize(times), nil
		}, them.close}, err
	}
	c.inJava = func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key)
		if err != nil {
			return nil, err
		}
		_, err = p.ask(ctx, "terms", size.warm, 0)
		return steps{func(ctx context.Context) ([]float64, error) {
			times, err := p.ask(ctx, "terms", size.passes, int(rest.Milliseconds()))
			return summarize(times), err
		}, p.close}, err
	}
	return c
}

// enough is how long a round of elections goes on at most.
const enough = 3 * time.Second

// succession is candidates that follow each other.
type succession struct {
	them   candidates
	leader int
}

func newSuccession(ctx context.Context, them candidates) (*succession, error) {
	_, _, err := them.lead(ctx, 0)
	return &succession{them: them}, err
}

// A passed is one change of the leader.
type passed struct {
	resigned, began time.Time
	term            int64
}

// pass has the leader resign, and the other lead.
func (s *succession) pass(ctx context.Context) (p passed, err error) {
	next := 1 - s.leader
	type led struct {
		at   time.Time
		term int64
		err  error
	}
	won := make(chan led, 1)
	go func() { // ends with the term, or ctx
		at, term, err := s.them.lead(ctx, next)
		won <- led{at, term, err}
	}()
	if err := s.them.waits(ctx, next); err != nil {
		return p, err
	}
	time.Sleep(rest)
	p.resigned = time.Now()
	if err := s.them.resign(ctx, s.leader); err != nil {
		return p, err
	}
	last := <-won
	s.leader, p.began, p.term = next, last.at, last.term
	return p, last.err
}

// ourCandidates campaign by asynclock.
type ourCandidates struct {
	key       string
	clients   [2]*asynclockClient
	campaigns [2]<-chan elect.Elected
	terms     [2]*elect.Term
	stop      context.CancelFunc
}

func newOurCandidates(ctx context.Context, a arena, key string) (*ourCandidates, error) {
	campaigning, stop := context.WithCancel(context.WithoutCancel(ctx)) // ends with close
	o := &ourCandidates{key: key, stop: stop}
	for i := range o.clients {
		var err error
		if o.clients[i], err = openAsynclock(a.world); err != nil {
			stop()
			return nil, err
		}
		o.campaigns[i] = elect.Campaign(campaigning, o.clients[i].locks, key, elect.WithValue(fmt.Append(nil, "candidate ", i)))
		if i == 0 { // the first term is the first candidate's
			if err := until(ctx, o.led); err != nil {
				stop()
				return nil, err
			}
		}
	}
	return o, nil
}

// led reports whether anybody leads.
func (o *ourCandidates) led() (bool, error) {
	info, err := o.clients[0].locks.Inspect(context.Background(), o.key)
	return info.Held, err
}

func (o *ourCandidates) lead(ctx context.Context, candidate int) (time.Time, int64, error) {
	select {
	case e, open := <-o.campaigns[candidate]:
		if !open {
			return time.Time{}, 0, asynclock.ErrClosed
		}
		term, err := e.Term()
		at := time.Now()
		if err != nil {
			return at, 0, err
		}
		o.terms[candidate] = term
		return at, term.Token(), nil
	case <-ctx.Done():
		return time.Time{}, 0, ctx.Err()
	}
}

func (o *ourCandidates) waits(ctx context.Context, other int) error {
	return until(ctx, func() (bool, error) {
		info, err := o.clients[other].locks.Inspect(ctx, o.key)
		return info.Waiters > 0, err
	})
}

func (o *ourCandidates) resign(ctx context.Context, candidate int) error {
	return o.terms[candidate].Resign(ctx)
}

func (o *ourCandidates) close(ctx context.Context) error {
	o.stop()
	var clients []client
	for _, c := range o.clients {
		clients = append(clients, &familyClient{asynclockClient: c})
	}
	return closeClients(ctx, clients)
}
