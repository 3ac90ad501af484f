// SPDX-License-Identifier: Apache-2.0

// Package check says whether a history is one that the library promises.
//
// Each rule is judged by itself, from what the processes and resources told, so
// that one mistake in here does not hide all others; the model of the lock, which
// porcupine searches, repeats in other words what the rules of overlap and order
// say. check.go begins it; the other files, but for figures.go, have a rule each.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// Limits are what the rules about waiting need to know of the run.
type Limits struct {
	// Repair is how long a key may be of no use to those who wait for it, after
	// something broke and works again.
	Repair time.Duration
	// Turns is how long it takes until everyone else has had a turn.
	Turns time.Duration
}

// A Violation is a promise that was not kept.
type Violation struct {
	Rule string
	Key  string
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s: key %q: %s", v.Rule, v.Key, v.Text) }

// A Report is what there is to say about a history.
type Report struct {
	Span       time.Duration // from the first request to the last answer
	Leases     int
	Failed     map[string]int // requests, by error
	Writes     map[string]int // accepted ones, by resource
	Refused    int            // stale writes
	Excused    int            // overlaps of trusted leases that a loss of data explains
	Overtaken  int            // leases with a token below one given before, that such a loss explains
	Longest    time.Duration  // wait
	Faults     []FaultFigures // by name
	Violations []Violation
}

// FaultFigures are about all faults of one name.
type FaultFigures struct {
	Name    string
	Count   int
	Excused int           // overlaps
	Worst   time.Duration // from its end to the next lease of each key
}

// A lease is a request that was answered with one.
type lease struct {
	op, key     string
	how         string
	token       int64
	ttl         history.Time
	asked, told history.Time
	since       history.Time // when the holding was asked for that it is part of
	valid       history.Time // it is known to have been trusted from told until here
	over, given history.Time // Unlock was called, and returned; 0 if it never was
	unlocked    bool         // without an error
	excused     bool         // it overlaps another, and the store had lost one of them
	overtaken   bool         // it has a smaller token than one given before, likewise
}

// A wait is a request with its answer.
type wait struct {
	op          string
	asked, told history.Time
}

// A key is all that happened to one key.
type key struct {
	name   string
	leases []*lease // by the time of the answer
	waits  []wait
}

// A fault is one, and what it explains.
type fault struct {
	history.Record

	excused int // overlaps
}

// A checker is a history being judged.
type checker struct {
	limits Limits
	keys   []*key
	faults []*fault // by their begin
	writes []history.Record
	report Report
}

// History judges a history.
func History(records []history.Record, limits Limits) Report {
	c := &checker{limits: limits}
	c.report.Failed = make(map[string]int)
	c.report.Writes = make(map[string]int)
	c.gather(records)
	for _, k := range c.keys {
		c.checkOverlaps(k)
		c.checkOrder(k)
		c.checkModel(k)
		c.checkWaits(k)
	}
	c.checkResources()
	c.figures()
	return c.report
}

func (c *checker) violate(rule, key, format string, args ...any) {
	c.report.Violations = append(c.report.Violations, Violation{rule, key, fmt.Sprintf(format, args...)})
}

// gather sorts records by what they are about.
func (c *checker) gather(records []history.Record) {
	keys := make(map[string]*key)
	leases := make(map[string]*lease)
	keyOf := func(name string) *key {
		if keys[name] == nil {
			keys[name] = &key{name: name}
		}
		return keys[name]
	}
	var begin, end history.Time
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case history.Held:
			l := &lease{
				op: r.Op, key: r.Key, how: r.How, token: r.Token, ttl: r.TTL,
				asked: r.Begin, told: r.End, valid: r.End,
			}
			if leases[r.Op] != nil {
				c.violate("history", r.Key, "request %s was answered twice", r.Op)
			}
			leases[r.Op] = l
			k := keyOf(r.Key)
			k.leases = append(k.leases, l)
			k.waits = append(k.waits, wait{r.Op, r.Begin, r.End})
		case history.Failed:
			c.report.Failed[r.Error]++
			k := keyOf(r.Key)
			k.waits = append(k.waits, wait{r.Op, r.Begin, r.End})
		case history.Fault:
			c.faults = append(c.faults, &fault{Record: *r})
			continue
		case history.Write:
			c.writes = append(c.writes, *r)
			c.report.Writes[r.Resource]++
			continue
		case history.Bye:
			if r.Told != r.Asked {
				c.violate("waiting", "", "%s made %d requests and got %d answers", r.Whom, r.Asked, r.Told)
			}
			continue
		case history.Left:
			c.violate("leftovers", r.Key, "%s", r.Error)
			continue
		case history.Run:
			continue
		case history.Ended:
			continue // below: the lease may be in a later part
		}
		if begin == 0 || r.Begin < begin {
			begin = r.Begin
		}
		end = max(end, r.End)
	}
	for i := range records {
		r := &records[i]
		if r.Kind != history.Ended {
			continue
		}
		l := leases[r.Op]
		if l == nil {
			c.violate("history", r.Key, "lease %s ended and never began", r.Op)
			continue
		}
		l.valid = max(l.valid, r.Valid)
		l.over, l.given, l.unlocked = r.Begin, r.End, r.Unlocked
		c.report.Refused += r.Refused
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		k := keys[name]
		slices.SortFunc(k.leases, func(a, b *lease) int { return cmp.Compare(a.told, b.told) })
		k.trace()
		c.keys = append(c.keys, k)
		c.report.Leases += len(k.leases)
	}
	slices.SortFunc(c.faults, func(a, b *fault) int { return cmp.Compare(a.Begin, b.Begin) })
	c.report.Span = (end - begin).Duration()
}
