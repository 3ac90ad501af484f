// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// unheard is for how long readers may join a tenure whose client has not heard of a writer, because the
// message was lost: until the next renewal at the latest.
const unheard = 5 * time.Second

// lying is for how long a tenure that nobody has received any of may go to a reader that comes, although its client has
// heard of a writer: rule F3 of docs/design.md, for F4's 100 ms. A timer ends that, which a busy machine delays.
const lying = time.Second

// An owner is what the store told about one acquisition of a key of readers.
type owner struct {
	op       string
	mode     history.Mode
	ttl      history.Time
	token    int64        // of its grant
	first    history.Time // its first request was sent then
	queued   history.Time // it was in the queue from here to its grant, without a doubt; 0: it was not
	admitted history.Time // its client was told of the grant then; 0: never
	heard    history.Time // its client knew from then on that somebody waits; 0: never
	gone     history.Time // it was about to leave; 0: never
}

// addOwner adds what the store told.
func (g *gathering) addOwner(r *history.Record) {
	if g.owners[r.Key] == nil {
		g.owners[r.Key] = make(map[string]*owner)
	}
	o := g.owners[r.Key][r.Op]
	if o == nil {
		o = &owner{op: r.Op}
		g.owners[r.Key][r.Op] = o
	}
	o.mode, o.ttl = r.Mode, r.TTL
	switch r.Kind { //nolint:exhaustive // others are about no owner
	case history.Queued:
		o.first, o.queued, o.admitted = r.Begin, r.End, 0
	case history.Admitted:
		if o.admitted == 0 { // otherwise it has asked again
			o.first, o.admitted, o.token = r.Begin, r.End, r.Token
		}
	case history.Heard:
		o.heard = r.End
	case history.Gone:
		o.gone = r.Begin
	}
}

// checkOvertaking: a reader that requests the key when a writer is in the queue does not come in before
// that writer. There are three ways in which it may, each by a place that its client had before the writer: the reader
// comes in with that; or it joins others, because its client has not heard of the writer yet; or it has what lies in the
// channels of others.
//
// Tokens say who came in before whom, and replies of the store who was in the queue. So this depends on no
// clock, except for how late a client may hear.
func (c *checker) checkOvertaking(k *key) {
	var writers []*owner
	readers := make(map[string][]*owner) // by process
	for _, o := range c.owners[k.name] {
		switch {
		case o.admitted == 0:
		case o.mode == history.Shared:
			readers[process(o.op)] = append(readers[process(o.op)], o)
		case o.queued != 0:
			writers = append(writers, o)
		}
	}
	slices.SortFunc(writers, func(a, b *owner) int { return cmp.Compare(a.token, b.token) })
	for _, l := range k.leases {
		if l.mode != history.Shared {
			continue
		}
		const most = 32 // writers that can be in the queue at once: one of each client
		next, _ := slices.BinarySearchFunc(writers, l.token, func(o *owner, token int64) int { return cmp.Compare(o.token, token) })
		for _, w := range writers[next:min(next+most, len(writers))] {
			if l.asked <= w.queued || w.token == l.token {
				continue
			}
			if c.dropped(k.name, w, l) {
				c.report.Moved++
				continue
			}
			c.report.Behind++
			if mine := readers[l.process()]; !slices.ContainsFunc(mine, func(o *owner) bool { return l.cameWith(o, w) || c.joined(l, o, w) || c.found(k, l, o, w) }) {
				c.violate("overtaking", k.name, "reader %s (asked at %v, told at %v, token %d) overtook writer %s, which was queued at %v and has token %d",
					l.op, l.asked, l.told, l.token, w.op, w.queued, w.token)
			}
		}
	}
}

// unaware is for how long a client may believe that messages reach it, when the store does not: until the
// next proof of its subscription. Others pass its waiters meanwhile, which come back with their next
// heartbeat.
const unaware = 12 * time.Second

// dropped reports whether a fault may have moved the writer in the queue.
func (c *checker) dropped(key string, w *owner, l *lease) bool {
	return slices.ContainsFunc(c.faults, func(f *fault) bool {
		end := f.End
		if f.Moves {
			end += history.Span(unaware)
		}
		return (f.Lossy || f.Forgets || f.Moves) && (f.Key == "" || f.Key == key) && f.Begin <= l.told && end >= w.first
	})
}

// cameWith reports whether the grant of o, which had queued before w, let the reader in.
func (l *lease) cameWith(o, w *owner) bool {
	return o.token == l.token && o.first <= w.queued && l.asked <= o.admitted && o.admitted <= l.told
}

// joined reports whether the reader may have joined o, whose client had not heard of w.
func (c *checker) joined(l *lease, o, w *owner) bool {
	late := l.asked - w.queued
	is := l.met(o, w) && (o.heard == 0 || o.heard >= l.asked) && late <= history.Span(unheard)+c.faulty(w.queued, l.asked)
	if is {
		c.report.Unheard = max(c.report.Unheard, late.Duration())
	}
	return is
}

// found reports whether the reader may have what lay in the channels of others, because nobody had received any of it.
func (c *checker) found(k *key, l *lease, o, w *owner) bool {
	since := max(o.admitted, o.heard)
	return l.met(o, w) && l.asked-since <= history.Span(lying)+c.faulty(since, l.asked) &&
		!slices.ContainsFunc(k.leases, func(x *lease) bool {
			return x.process() == l.process() && x.token == l.token && x.ttl == l.ttl && x.told <= l.asked && x.valid >= l.asked
		})
}

// met reports whether l's client had o when the reader came, by a place before w.
func (l *lease) met(o, w *owner) bool {
	return o.token == l.token && o.ttl == l.ttl && o.first <= w.queued && o.admitted <= l.asked && (o.gone == 0 || o.gone >= l.asked)
}

// faulty returns how long the faults lasted of which a part is in this time.
func (c *checker) faulty(from, to history.Time) (sum history.Time) {
	for _, f := range c.faults {
		if f.Begin <= to && f.End >= from {
			sum += f.End - f.Begin
		}
	}
	return sum
}

// process names who has made a request.
func process(op string) string {
	name, _, _ := strings.Cut(op, "/")
	return name
}
