// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// gather sorts records by what they are about. Ends of leases come last, because the
// lease may be in a later part.
func (c *checker) gather(records []history.Record) {
	g := &gathering{checker: c, byName: make(map[string]*key)}
	for i := range records {
		g.add(&records[i])
	}
	for i := range records {
		if r := &records[i]; r.Kind == history.Ended {
			g.addEnd(r)
		}
	}
	g.finish()
}

// A gathering is what gather has found until now.
type gathering struct {
	*checker

	byName     map[string]*key
	begin, end history.Time // of the first request, and of the last answer
}

// add adds a record of any kind.
func (g *gathering) add(r *history.Record) {
	switch r.Kind {
	case history.Held:
		g.addLease(r)
	case history.Failed:
		if r.Whole == "" || r.Op == r.Whole+".1" { // a request for several keys is one
			g.report.Failed[r.Error]++
		}
		g.addWait(r)
	case history.Fault:
		g.faults = append(g.faults, &fault{Record: *r})
	case history.Write:
		g.writes = append(g.writes, *r)
		g.report.Writes[r.Resource]++
	case history.Bye:
		if r.Told != r.Asked {
			g.violate("waiting", "", "%s made %d requests and got %d answers", r.Whom, r.Asked, r.Told)
		}
	case history.Left:
		g.violate("leftovers", r.Key, "%s", r.Error)
	case history.Seen:
		g.looks = append(g.looks, *r)
		g.report.Looks++
	case history.Began:
		j := g.jobOf(r)
		j.began = append(j.began, *r)
	case history.Round:
		j := g.jobOf(r)
		j.rounds = append(j.rounds, *r)
	case history.Queued, history.Admitted, history.Heard, history.Gone:
		g.addOwner(r)
	case history.Run:
		g.origin = r.Origin
	case history.Ended:
	}
}

func (g *gathering) jobOf(r *history.Record) *job {
	j := g.jobs[r.Key]
	if j == nil {
		j = &job{key: r.Key, every: r.Every}
		g.jobs[r.Key] = j
	}
	return j
}

func (g *gathering) addLease(r *history.Record) {
	if g.byOp[r.Op] != nil {
		g.violate("history", r.Key, "request %s was answered twice", r.Op)
	}
	l := &lease{
		op: r.Op, key: r.Key, whole: r.Whole, how: r.How, token: r.Token, ttl: r.TTL,
		asked: r.Begin, told: r.End, valid: r.End,
		mode: r.Mode, weight: r.Weight, limit: r.Limit,
	}
	g.byOp[r.Op] = l
	k := g.addWait(r)
	k.leases = append(k.leases, l)
	k.shared = k.shared || l.mode != history.Exclusive
	if l.whole != "" {
		k.parts = true
		g.report.Parts++
	}
	switch l.mode {
	case history.Shared:
		g.report.Shared++
	case history.Permits:
		g.report.Permits++
	case history.Exclusive:
	}
}

// addWait adds a request with its answer, and returns the key. The runner of a job does not wait for its key.
func (g *gathering) addWait(r *history.Record) *key {
	k := g.byName[r.Key]
	if k == nil {
		k = &key{name: r.Key}
		g.byName[r.Key] = k
	}
	if !strings.HasPrefix(r.How, "once.") {
		k.waits = append(k.waits, wait{r.Op, r.Begin, r.End})
	}
	if g.begin == 0 || r.Begin < g.begin {
		g.begin = r.Begin
	}
	g.end = max(g.end, r.End)
	return k
}

func (g *gathering) addEnd(r *history.Record) {
	l := g.byOp[r.Op]
	if l == nil {
		g.violate("history", r.Key, "lease %s ended and never began", r.Op)
		return
	}
	l.valid = max(l.valid, r.Valid)
	l.over, l.given, l.unlocked, l.lapsed = r.Begin, r.End, r.Unlocked, r.Lapsed
	g.report.Refused += r.Refused
}

// finish puts all into the order that rules count on.
func (g *gathering) finish() {
	for _, name := range slices.Sorted(maps.Keys(g.byName)) {
		k := g.byName[name]
		slices.SortFunc(k.leases, func(a, b *lease) int { return cmp.Compare(a.told, b.told) })
		k.trace()
		g.keys = append(g.keys, k)
		g.report.Leases += len(k.leases)
	}
	slices.SortFunc(g.faults, func(a, b *fault) int { return cmp.Compare(a.Begin, b.Begin) })
	g.report.Span = (g.end - g.begin).Duration()
}
