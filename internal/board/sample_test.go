// SPDX-License-Identifier: Apache-2.0

package board

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
)

// sampleOf returns a sample of these keys.
func sampleOf(infos ...asynclock.Info) Sample {
	s := Sample{}
	for _, info := range infos {
		s[info.Key] = info
	}
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	lock := func(holder string, token int64, waiters int) Sample {
		return sampleOf(asynclock.Info{Key: "k", Held: true, Holder: holder, Token: token, Waiters: waiters})
	}
	share := func(mode asynclock.Mode, holder string, token int64, used int) Sample {
		return sampleOf(asynclock.Info{Key: "k", Held: true, Holder: holder, Token: token, Mode: mode, Used: used, Limit: 3})
	}
	queue := func(waiters int) Sample { return sampleOf(asynclock.Info{Key: "k", Waiters: waiters}) }
	readers, permits := asynclock.Shared, asynclock.Permits
	fewer := share(permits, "2 holders", 1, 2)
	limited := fewer.Of("k")
	limited.Limit = 2
	for name, tt := range map[string]struct {
		before, after Sample
		want          Kind // "": none
	}{
		"nothing":                      {Sample{}, Sample{}, ""},
		"as before":                    {lock("a", 1, 1), lock("a", 1, 1), ""},
		"the first sample":             {nil, lock("a", 1, 1), Found},
		"the first sample, waiting":    {nil, queue(1), Found},
		"taken":                        {Sample{}, lock("a", 1, 0), Taken},
		"taken by one of the waiters":  {queue(2), lock("a", 1, 1), Taken},
		"freed":                        {lock("a", 1, 0), Sample{}, Freed},
		"freed, and waited for":        {lock("a", 1, 0), queue(2), Freed},
		"passed on":                    {lock("a", 1, 1), lock("b", 2, 0), Passed},
		"passed on in one client":      {lock("a", 1, 0), lock("a", 2, 0), Passed},
		"passed on without tokens":     {lock("a", 0, 0), lock("b", 0, 0), Passed},
		"from readers to a writer":     {share(readers, "a", 1, 0), lock("a", 1, 0), Passed},
		"from a writer to readers":     {lock("a", 1, 0), share(readers, "a", 1, 0), Passed},
		"another reader":               {share(readers, "a", 1, 0), share(readers, "2 holders", 2, 0), Shares},
		"a reader less":                {share(readers, "3 holders", 3, 0), share(readers, "2 holders", 3, 0), Shares},
		"the same readers":             {share(readers, "2 holders", 2, 0), share(readers, "2 holders", 2, 0), ""},
		"another permit":               {share(permits, "a", 1, 1), share(permits, "a", 1, 2), Shares},
		"another number of permits":    {fewer, sampleOf(limited), Shares},
		"the first waiter":             {lock("a", 1, 0), lock("a", 1, 1), Waiting},
		"a waiter less":                {lock("a", 1, 2), lock("a", 1, 1), Waiting},
		"a waiter that nobody serves":  {Sample{}, queue(1), Waiting},
		"the end of the last waiter":   {queue(1), Sample{}, Waiting},
		"a holder, and another waiter": {lock("a", 1, 0), lock("b", 2, 1), Passed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := Compare(tt.before, tt.after)
			if tt.want == "" {
				if len(changes) > 0 {
					t.Errorf("got %+v, want none", changes)
				}
				return
			}
			if len(changes) != 1 || changes[0].Kind != tt.want {
				t.Fatalf("got %+v, want %q", changes, tt.want)
			}
			c := changes[0]
			if fmt.Sprint(c.Before) != fmt.Sprint(tt.before.Of("k")) || fmt.Sprint(c.After) != fmt.Sprint(tt.after.Of("k")) ||
				c.Before.Key != "k" || c.After.Key != "k" {
				t.Errorf("got %+v, want what the samples have", c)
			}
		})
	}
}

// TestCompareSortsByKey.
func TestCompareSorts(t *testing.T) {
	t.Parallel()
	held := func(key string) asynclock.Info { return asynclock.Info{Key: key, Held: true} }
	changes := Compare(sampleOf(held("b"), held("c"), held("same")), sampleOf(held("d"), held("a"), held("same")))
	var got []string
	for _, c := range changes {
		got = append(got, c.After.Key+" "+string(c.Kind))
	}
	if want := []string{"a taken", "b freed", "c freed", "d taken"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSamplerForgets: while no list is whole, it does not keep all keys that ever were in one.
func TestSamplerForgets(t *testing.T) {
	t.Parallel()
	n := 0
	s := Sampler{List: func(context.Context, string) iter.Seq2[asynclock.Info, error] {
		return func(yield func(asynclock.Info, error) bool) {
			n++
			_ = yield(asynclock.Info{Key: fmt.Sprint(n), Held: true}, nil) && yield(asynclock.Info{}, errors.New("too slow"))
		}
	}}
	for range 50 {
		now, _, err := s.Next(t.Context())
		if want := min(n, mostAbsent+1); err == nil || len(now) != want {
			t.Fatalf("list %d: got %d keys, error %v, want %d keys and an error", n, len(now), err, want)
		}
	}
}

// TestSampler: a key that can't be read stays as it was, and is said once. A list that fails is no sample.
func TestSampler(t *testing.T) {
	t.Parallel()
	foreign, gone := errors.New("foreign"), errors.New("gone")
	type found struct {
		key   string
		token int64
		err   error
	}
	lists := [][]found{
		{{"a", 1, nil}, {"b", 1, nil}},
		{{"a", 0, foreign}, {"b", 2, nil}, {"never", 0, foreign}},
		{{"a", 0, foreign}},
		{{"b", 3, nil}, {"", 0, gone}},
		{{"", 0, gone}},
		{{"a", 2, nil}, {"", 0, gone}},
		{{"a", 0, foreign}, {"", 0, gone}},
		{{"a", 0, foreign}},
		{{"a", 3, nil}},
		{{"a", 0, foreign}},
	}
	turn := 0
	s := Sampler{Prefix: "some", List: func(_ context.Context, prefix string) iter.Seq2[asynclock.Info, error] {
		if prefix != "some" {
			t.Errorf("got prefix %q, want the sampler's", prefix)
		}
		return func(yield func(asynclock.Info, error) bool) {
			for _, f := range lists[turn] {
				if !yield(asynclock.Info{Key: f.key, Held: true, Token: f.token}, f.err) {
					return
				}
			}
		}
	}}
	for i, want := range []string{"a1 b1 []", "a1 b2 [foreign foreign]", "a1 []", "a1 b3 [] gone", "a1 b3 [] gone", "a2 b3 [] gone", "a2 b3 [] gone", "a2 []", "a3 []", "a3 [foreign]"} {
		turn = i
		before := s.Last
		now, keyErrors, err := s.Next(t.Context())
		got := ""
		for _, key := range []string{"a", "b", "never", ""} {
			if info, ok := now[key]; ok {
				got += fmt.Sprintf("%s%d ", key, info.Token)
			}
		}
		if got += fmt.Sprint(keyErrors); err != nil {
			got += " " + err.Error()
			if fmt.Sprint(s.Last) != fmt.Sprint(before) {
				t.Errorf("list %d: got %v to compare with, want %v as before", i, s.Last, before)
			}
		}
		if got != want {
			t.Errorf("list %d: got %s, want %s", i, got, want)
		}
	}
}
