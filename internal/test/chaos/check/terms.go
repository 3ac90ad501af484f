// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// checkTerms: who looks after another look was answered, or after a term had begun, sees no
// smaller number of a term, except where the store lost what it had acknowledged. The channel of
// one observer never goes back, and nothing excuses that. A value belongs to its term.
func (c *checker) checkTerms() {
	byName := make(map[string]*key)
	for _, k := range c.keys {
		byName[k.name] = k
	}
	slices.SortStableFunc(c.looks, func(a, b history.Record) int { return cmp.Compare(a.End, b.End) })
	looks := make(map[string][]history.Record) // of keys
	sent := make(map[string]history.Record)    // the newest of each observer and key
	for _, s := range c.looks {
		c.checkValue(&s)
		if s.How != "Observe" {
			looks[s.Key] = append(looks[s.Key], s)
			continue
		}
		observer := s.Whom + " " + s.Key
		if last := sent[observer]; s.Token != 0 && s.Token < last.Token {
			c.violate("terms", s.Key, "%s was sent term %d at %v after term %d", s.Whom, s.Token, s.End, last.Token)
		}
		if s.Token != 0 {
			sent[observer] = s
		}
	}
	for name, some := range looks {
		c.checkLooks(byName[name], some)
	}
}

// checkValue: a leader's value names its request, whose lease has the number of the term.
func (c *checker) checkValue(s *history.Record) {
	l := c.byOp[s.Value]
	if l != nil && s.Token != l.token {
		c.violate("terms", s.Key, "%s saw at %v term %d with the value of %s, whose term is %d", s.Whom, s.End, s.Token, l.op, l.token)
	}
}

// checkLooks judges the looks at one key, which are in the order of their answers. K is nil if
// there was no term.
func (c *checker) checkLooks(k *key, looks []history.Record) {
	var known []*lease // terms, and what looks have found, by the time from which a look shows no older one
	var ttl history.Time
	if k != nil {
		for _, l := range k.leases {
			known = append(known, &lease{op: l.op, key: l.key, token: l.token, told: l.told})
			ttl = max(ttl, l.ttl)
		}
	}
	for _, s := range looks {
		known = append(known, &lease{op: s.Whom, key: s.Key, token: s.Token, told: s.End})
	}
	slices.SortStableFunc(known, func(a, b *lease) int { return cmp.Compare(a.told, b.told) })
	byAsked := slices.Clone(looks)
	slices.SortFunc(byAsked, func(a, b history.Record) int { return cmp.Compare(a.Begin, b.Begin) })
	var newest *lease
	next := 0
	for _, s := range byAsked {
		for ; next < len(known) && known[next].told < s.Begin; next++ {
			if newest == nil || known[next].token > newest.token {
				newest = known[next]
			}
		}
		if s.Token == 0 || newest == nil || s.Token >= newest.token || c.forgot(&s, ttl) {
			continue
		}
		c.violate("terms", s.Key, "%s looked at %v and saw term %d, when %s already had seen or had %d",
			s.Whom, s.Begin, s.Token, newest.op, newest.token)
	}
}

// forgot reports whether the store may have lost, lately, what a look should have seen. An older
// holder that has come back with the loss, or goes on in its client, is there for a TTL at most.
func (c *checker) forgot(s *history.Record, ttl history.Time) bool {
	return slices.ContainsFunc(c.faults, func(f *fault) bool {
		return f.Lossy && (f.Key == "" || f.Key == s.Key) && f.Begin <= s.End && s.Begin <= f.End+ttl
	})
}
