// SPDX-License-Identifier: Apache-2.0

package cli

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
func sampleOf(infos ...asynclock.Info) sample {
	s := sample{}
	for _, info := range infos {
		s[info.Key] = info
	}
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	lock := func(holder string, token int64, waiters int) sample {
		return sampleOf(asynclock.Info{Key: "k", Held: true, Holder: holder, Token: token, Waiters: waiters})
	}
	share := func(mode asynclock.Mode, holder string, token int64, used int) sample {
		return sampleOf(asynclock.Info{Key: "k", Held: true, Holder: holder, Token: token, Mode: mode, Used: used, Limit: 3})
	}
	queue := func(waiters int) sample { return sampleOf(asynclock.Info{Key: "k", Waiters: waiters}) }
	readers, permits := asynclock.Shared, asynclock.Permits
	fewer := share(permits, "2 holders", 1, 2)
	limited := fewer.of("k")
	limited.Limit = 2
	for name, tt := range map[string]struct {
		before, after sample
		want          changeKind // "": none
	}{
		"nothing":                      {sample{}, sample{}, ""},
		"as before":                    {lock("a", 1, 1), lock("a", 1, 1), ""},
		"the first sample":             {nil, lock("a", 1, 1), keyFound},
		"the first sample, waiting":    {nil, queue(1), keyFound},
		"taken":                        {sample{}, lock("a", 1, 0), keyTaken},
		"taken by one of the waiters":  {queue(2), lock("a", 1, 1), keyTaken},
		"freed":                        {lock("a", 1, 0), sample{}, keyFreed},
		"freed, and waited for":        {lock("a", 1, 0), queue(2), keyFreed},
		"passed on":                    {lock("a", 1, 1), lock("b", 2, 0), keyPassed},
		"passed on in one client":      {lock("a", 1, 0), lock("a", 2, 0), keyPassed},
		"passed on without tokens":     {lock("a", 0, 0), lock("b", 0, 0), keyPassed},
		"from readers to a writer":     {share(readers, "a", 1, 0), lock("a", 1, 0), keyPassed},
		"from a writer to readers":     {lock("a", 1, 0), share(readers, "a", 1, 0), keyPassed},
		"another reader":               {share(readers, "a", 1, 0), share(readers, "2 holders", 2, 0), keyShares},
		"a reader less":                {share(readers, "3 holders", 3, 0), share(readers, "2 holders", 3, 0), keyShares},
		"the same readers":             {share(readers, "2 holders", 2, 0), share(readers, "2 holders", 2, 0), ""},
		"another permit":               {share(permits, "a", 1, 1), share(permits, "a", 1, 2), keyShares},
		"another number of permits":    {fewer, sampleOf(limited), keyShares},
		"the first waiter":             {lock("a", 1, 0), lock("a", 1, 1), keyWaiting},
		"a waiter less":                {lock("a", 1, 2), lock("a", 1, 1), keyWaiting},
		"a waiter that nobody serves":  {sample{}, queue(1), keyWaiting},
		"the end of the last waiter":   {queue(1), sample{}, keyWaiting},
		"a holder, and another waiter": {lock("a", 1, 0), lock("b", 2, 1), keyPassed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := compare(tt.before, tt.after)
			if tt.want == "" {
				if len(changes) > 0 {
					t.Errorf("got %+v, want none", changes)
				}
				return
			}
			if len(changes) != 1 || changes[0].kind != tt.want {
				t.Fatalf("got %+v, want %q", changes, tt.want)
			}
			c := changes[0]
			if fmt.Sprint(c.before) != fmt.Sprint(tt.before.of("k")) || fmt.Sprint(c.after) != fmt.Sprint(tt.after.of("k")) ||
				c.before.Key != "k" || c.after.Key != "k" {
				t.Errorf("got %+v, want what the samples have", c)
			}
		})
	}
}

// TestCompareSortsByKey.
func TestCompareSorts(t *testing.T) {
	t.Parallel()
	held := func(key string) asynclock.Info { return asynclock.Info{Key: key, Held: true} }
	changes := compare(sampleOf(held("b"), held("c"), held("same")), sampleOf(held("d"), held("a"), held("same")))
	var got []string
	for _, c := range changes {
		got = append(got, c.after.Key+" "+string(c.kind))
	}
	if want := []string{"a taken", "b freed", "c freed", "d taken"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
		{{"a", 0, foreign}},
		{{"a", 3, nil}},
		{{"a", 0, foreign}},
	}
	turn := 0
	s := sampler{prefix: "some", list: func(_ context.Context, prefix string) iter.Seq2[asynclock.Info, error] {
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
	for i, want := range []string{"a1 b1 []", "a1 b2 [foreign foreign]", "a1 []", "a1 b3 [] gone", "a1 []", "a3 []", "a3 [foreign]"} {
		turn = i
		before := s.last
		now, keyErrors, err := s.next(t.Context())
		got := ""
		for _, key := range []string{"a", "b", "never", ""} {
			if info, ok := now[key]; ok {
				got += fmt.Sprintf("%s%d ", key, info.Token)
			}
		}
		if got += fmt.Sprint(keyErrors); err != nil {
			got += " " + err.Error()
			if fmt.Sprint(s.last) != fmt.Sprint(before) {
				t.Errorf("list %d: got %v to compare with, want %v as before", i, s.last, before)
			}
		}
		if got != want {
			t.Errorf("list %d: got %s, want %s", i, got, want)
		}
	}
}
