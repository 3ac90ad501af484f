// SPDX-License-Identifier: Apache-2.0

package board

import (
	"maps"
	"slices"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Kind says how a key differs from one sample to the next.
type Kind string

// The first one that applies counts. Their names are in the output of watch, and never renamed.
const (
	Found   Kind = "found"   // it is in the first sample
	Taken   Kind = "taken"   // somebody has it, and nobody had
	Freed   Kind = "freed"   // nobody has it, and somebody had
	Passed  Kind = "passed"  // another has it, or the same again
	Shares  Kind = "shares"  // others have a part of it, or other parts
	Waiting Kind = "waiting" // more or fewer wait for it
)

// A Change is what has happened to a key between two samples.
type Change struct {
	Kind          Kind
	Before, After asynclock.Info // without a holder and waiters, but with the key, if the sample has none
}

// Compare returns the changes from one sample to the next, sorted by key, one of each key. Before the first sample is nil.
func Compare(before, after Sample) []Change {
	keys := slices.Collect(maps.Keys(after))
	for key := range before {
		if _, isThere := after[key]; !isThere {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var changes []Change
	for _, key := range keys {
		c := Change{Before: before.Of(key), After: after.Of(key)}
		if c.Kind = c.find(); before == nil {
			c.Kind = Found
		}
		if c.Kind != "" {
			changes = append(changes, c)
		}
	}
	return changes
}

// find returns how the key has changed; empty for not at all.
func (c *Change) find() Kind {
	b, a := &c.Before, &c.After
	isOther := a.Token != b.Token || a.Holder != b.Holder || a.Used != b.Used || a.Limit != b.Limit
	switch {
	case a.Held && !b.Held:
		return Taken
	case b.Held && !a.Held:
		return Freed
	case a.Held && (a.Mode != b.Mode || a.Mode == asynclock.Exclusive && isOther):
		return Passed
	case a.Held && isOther:
		return Shares
	case a.Waiters != b.Waiters:
		return Waiting
	}
	return ""
}
