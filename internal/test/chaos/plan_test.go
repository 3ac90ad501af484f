// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// attacks returns what the first n strikes of a seed are, over three faults.
func attacks(t *testing.T, seed uint64, n int) (what []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		start := time.Now()
		var deck []fault
		for _, name := range []string{"a", "b", "c"} {
			deck = append(deck, fault{name: name, lane: network, strike: func(b *blow) error {
				what = append(what, fmt.Sprint(name, time.Since(start), b.between(1, 100)))
				if len(what) == n {
					stop()
				}
				return nil
			}})
		}
		deck = append(deck, fault{name: "of another lane", lane: storage, strike: func(*blow) error {
			return context.Canceled // would end the attack with an error
		}})
		file, err := history.Create(t.TempDir(), "x")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r := &run{settings: defaultSettings(standalone, seed, 0, ""), file: file}
		if err := r.attack(ctx, network, deck); err != nil {
			t.Error(err)
		}
	})
	return what
}

func TestSeedDecidesWhatStrikesWhen(t *testing.T) {
	once, again, other := attacks(t, 1, 30), attacks(t, 1, 30), attacks(t, 2, 30)
	if !slices.Equal(once, again) {
		t.Errorf("got %v and %v for one seed", once, again)
	}
	if slices.Equal(once, other) {
		t.Errorf("got %v for two seeds", once)
	}
	for round := range slices.Chunk(once, 3) { // all of them before any again
		var names []string
		for _, strike := range round {
			names = append(names, strike[:1])
		}
		slices.Sort(names)
		if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
			t.Errorf("a round: got %v, want %v", names, want)
		}
	}
}

// TestARunOfJobsLooksAtEachKeyOnce: in the end, and its journals are those of the jobs.
func TestARunOfJobsLooksAtEachKeyOnce(t *testing.T) {
	t.Parallel()
	s := defaultSettings(standalone, 1, 0, "")
	s.onlyJobs(50)
	if s.Workers != 50 || s.Callers != 0 || s.habits != (habits{Jobs: true}) {
		t.Errorf("got %+v, %+v, want 50 processes that run jobs", s.crew, s.habits)
	}
	all := (&run{settings: s}).allKeys()
	slices.Sort(all)
	if each := slices.Compact(slices.Clone(all)); !slices.Equal(all, each) || !slices.Contains(all, "j1") {
		t.Errorf("got %q, want those of jobs, each once", all)
	}
}

func TestFaultsAreFoundByName(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	if ok, err := runMain(t.Context(), []string{"-list"}, &list); !ok || err != nil {
		t.Fatal(ok, err)
	}
	names := strings.Split(strings.TrimSpace(list.String()), "\n")
	some, err := faultsNamed(names)
	if err != nil || len(some) != len(faults) {
		t.Errorf("got %d faults, %v, want all %d that -list prints", len(some), err, len(faults))
	}
	for _, site := range []string{standalone, sentinel, cluster, quorum} {
		for _, f := range faultsAt(site) {
			if f.rare || len(f.only) > 0 && !slices.Contains(f.only, site) {
				t.Errorf("%s at a %s site", f.name, site)
			}
		}
	}
	for _, bad := range [][]string{{"-faults", "earthquake"}, {"-jobs", "-1"}} {
		if ok, err := runMain(t.Context(), bad, &list); ok || err == nil {
			t.Errorf("%v: got %t, %v, want an error", bad, ok, err)
		}
	}
}
