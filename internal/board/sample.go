// SPDX-License-Identifier: Apache-2.0

package board

import (
	"cmp"
	"context"
	"iter"
	"maps"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A Sample has the keys that one listing has found held or waited for.
type Sample map[string]asynclock.Info

// A Sampler lists keys again and again.
type Sampler struct {
	List   func(ctx context.Context, prefix string) iter.Seq2[asynclock.Info, error]
	Prefix string

	Last    Sample          // the last whole one; nil before the first
	shown   Sample          // the last one, whole or not
	absent  map[string]int  // for how many lists, none of them whole, a key was not listed
	foreign map[string]bool // keys that could not be read, and why was said
}

// mostAbsent is for how many lists that break off a key is shown that none of them has, nor the last whole one.
const mostAbsent = 10

// Unread returns how many keys of the last sample could not be read.
func (s *Sampler) Unread() int { return len(s.foreign) }

// Next takes a sample, and returns it with the errors of single keys that are new. Such a key stays as it was before. With
// err, which is of the listing as a whole, what was not listed stays as it was, and the next sample does not count on it.
func (s *Sampler) Next(ctx context.Context) (now Sample, keyErrors []error, err error) {
	now, foreign := Sample{}, map[string]bool{}
	for info, failed := range s.List(ctx, s.Prefix) {
		switch {
		case failed == nil:
			now[info.Key] = info
		case info.Key == "":
			err = cmp.Or(err, failed)
		default:
			if foreign[info.Key] = true; !s.foreign[info.Key] {
				keyErrors = append(keyErrors, failed)
			}
			if before, known := s.shown[info.Key]; known {
				now[info.Key] = before
			}
		}
	}
	if err == nil {
		s.Last, s.shown, s.absent, s.foreign = now, now, map[string]int{}, foreign
		return now, keyErrors, nil
	}
	maps.Copy(foreign, s.foreign)
	s.foreign = foreign // they were said
	s.shown = s.fill(now)
	return now, keyErrors, err
}

// fill adds to a sample that is not whole what was shown before.
func (s *Sampler) fill(now Sample) Sample {
	absent := map[string]int{}
	for key, before := range s.shown {
		if _, listed := now[key]; listed {
			continue
		}
		if _, wasThere := s.Last[key]; !wasThere {
			if absent[key] = s.absent[key] + 1; absent[key] > mostAbsent {
				continue
			}
		}
		now[key] = before
	}
	s.absent = absent
	return now
}

// Of returns what is known of a key.
func (s Sample) Of(key string) asynclock.Info {
	info := s[key]
	info.Key = cmp.Or(info.Key, key)
	return info
}
