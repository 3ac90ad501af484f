// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A sample has the keys that one listing has found held or waited for.
type sample map[string]asynclock.Info

// A sampler lists keys again and again.
type sampler struct {
	list   func(ctx context.Context, prefix string) iter.Seq2[asynclock.Info, error]
	prefix string

	last    sample          // nil before the first
	foreign map[string]bool // keys that could not be read, and why was said
}

// next takes a sample, and returns it with the errors of single keys that are new. Such a key stays as it was before. With
// err, which is of the listing as a whole, what was not listed stays as it was, and the next sample does not count on it.
func (s *sampler) next(ctx context.Context) (now sample, keyErrors []error, err error) {
	now, foreign := sample{}, map[string]bool{}
	for info, failed := range s.list(ctx, s.prefix) {
		switch {
		case failed == nil:
			now[info.Key] = info
		case info.Key == "":
			err = cmp.Or(err, failed)
		default:
			if foreign[info.Key] = true; !s.foreign[info.Key] {
				keyErrors = append(keyErrors, failed)
			}
			if before, known := s.last[info.Key]; known {
				now[info.Key] = before
			}
		}
	}
	if err == nil {
		s.last, s.foreign = now, foreign
		return now, keyErrors, nil
	}
	maps.Copy(foreign, s.foreign)
	s.foreign = foreign // they were said
	for key, before := range s.last {
		if _, listed := now[key]; !listed {
			now[key] = before
		}
	}
	return now, keyErrors, err
}

// A changeKind says how a key differs from one sample to the next.
type changeKind string

// The first one that applies counts. Their names are in the output of watch, and never renamed.
const (
	keyFound   changeKind = "found"   // it is in the first sample
	keyTaken   changeKind = "taken"   // somebody has it, and nobody had
	keyFreed   changeKind = "freed"   // nobody has it, and somebody had
	keyPassed  changeKind = "passed"  // another has it, or the same again
	keyShares  changeKind = "shares"  // others have a part of it, or other parts
	keyWaiting changeKind = "waiting" // more or fewer wait for it
)

// A change is what has happened to a key between two samples.
type change struct {
	kind          changeKind
	before, after asynclock.Info // without a holder and waiters, but with the key, if the sample has none
}

// compare returns the changes from one sample to the next, sorted by key, one of each key. Before the first sample is nil.
func compare(before, after sample) []change {
	keys := slices.Collect(maps.Keys(after))
	for key := range before {
		if _, isThere := after[key]; !isThere {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var changes []change
	for _, key := range keys {
		c := change{before: before.of(key), after: after.of(key)}
		if c.kind = c.find(); before == nil {
			c.kind = keyFound
		}
		if c.kind != "" {
			changes = append(changes, c)
		}
	}
	return changes
}

func (s sample) of(key string) asynclock.Info {
	info := s[key]
	info.Key = cmp.Or(info.Key, key)
	return info
}

// find returns how the key has changed; empty for not at all.
func (c *change) find() changeKind {
	b, a := &c.before, &c.after
	isOther := a.Token != b.Token || a.Holder != b.Holder || a.Used != b.Used || a.Limit != b.Limit
	switch {
	case a.Held && !b.Held:
		return keyTaken
	case b.Held && !a.Held:
		return keyFreed
	case a.Held && (a.Mode != b.Mode || a.Mode == asynclock.Exclusive && isOther):
		return keyPassed
	case a.Held && isOther:
		return keyShares
	case a.Waiters != b.Waiters:
		return keyWaiting
	}
	return ""
}
