// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// checkResources: a resource that checks tokens never took a write that was
// older than one it had seen, and no write was based on a value that another had
// replaced. No fault excuses any.
//
// Writers read first, and reading shows their token too. So whoever overtakes a
// writer between its reading and its writing makes it stale, and each accepted
// write must continue the one before it. A token that was given twice would pass
// the resource's check and show here.
func (c *checker) checkResources() {
	type place struct{ resource, key string }
	accepted := make(map[place][]history.Record)
	for _, w := range c.writes {
		p := place{w.Resource, w.Key}
		accepted[p] = append(accepted[p], w)
	}
	tokens := make(map[string]int64)
	for _, k := range c.keys {
		for _, l := range k.leases {
			tokens[l.op] = l.token
		}
	}
	for p, writes := range accepted {
		slices.SortStableFunc(writes, func(a, b history.Record) int { return cmp.Compare(a.Wrote, b.Wrote) })
		var last history.Record
		for _, w := range writes {
			switch {
			case w.Token < last.Token:
				c.violate("fencing", p.key, "%s accepted write %d of %s with token %d after one with %d", p.resource, w.Wrote, w.Op, w.Token, last.Token)
			case w.Token == last.Token && w.Op != last.Op:
				c.violate("fencing", p.key, "%s accepted writes of %s and %s with the same token %d", p.resource, last.Op, w.Op, w.Token)
			case w.Wrote != last.Wrote+1 || w.Read != last.Wrote:
				c.violate("fencing", p.key, "%s accepted from %s %d after %d, based on %d: an update is lost", p.resource, w.Op, w.Wrote, last.Wrote, w.Read)
			}
			if token, known := tokens[w.Op]; !known || token != w.Token {
				c.violate("fencing", p.key, "%s accepted a write of %s with token %d, whose lease has %d", p.resource, w.Op, w.Token, token)
			}
			last = w
		}
	}
}
