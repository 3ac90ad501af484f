// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

var everything = store.Features{Tokens: true, FIFO: true, Retention: true, Shared: true, Permits: true, Limits: true, Notes: true, Announcements: true}

// A store gets the cases that its Features allow, each with a store of its own. The other cases are
// not even begun.
func TestEachCaseOpensAStoreAndNoOtherDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has     facts
		options []Option
	}{
		"everything":         {facts{everything, true}, nil},
		"no messages":        {facts{everything, false}, []Option{WithoutMessages()}},
		"nothing of wanting": {facts{store.Features{Tokens: true, FIFO: true, Shared: true, Permits: true, Limits: true, Notes: true}, true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int32
			Run(t, func(*testing.T) store.Store {
				opened.Add(1)
				return modest{memstore.New(), c.has.Features}
			}, append(c.options, InBubble())...)
			if got, want := int(opened.Load()), len(casesFor(c.has))+1; got != want {
				t.Errorf("stores that were opened: got %d, want %d: one to be asked for its Features, and one for each case", got, want)
			}
		})
	}
}

// A modest store has more than it claims to have.
type modest struct {
	store.Store

	claims store.Features
}

func (m modest) Features() store.Features { return m.claims }

// A missing feature rules out the cases about it, and no others. A store with all features gets
// every case.
func TestWhatAStoreLacksRulesCasesOut(t *testing.T) {
	t.Parallel()
	but := func(take func(*facts)) facts {
		f := facts{everything, true}
		take(&f)
		return f
	}
	ofTTLs := []string{
		"a release that finds nothing held says who has the key",
		"tokens rise over what the holder wrote back", "inspect shows the token that a renewal wrote back",
		"force goes by the token that a renewal wrote back",
		"the first waiter is told when the key is kept back, and for how long",
		"the next waiter is told when the first one leaves a key that is kept back",
	}
	const noAnnouncements = "a store without announcements writes the note all the same"
	lacks := []string{
		noAnnouncements,
		"a store without shares refuses them and changes nothing",
		"a store without permits refuses them and changes nothing",
		"a store without limits refuses them and changes nothing",
		"a store without notes refuses them and changes nothing",
	}
	shared, ofPermits := names(sharedCases[:len(sharedCases)-1]), names(permitCases[:len(permitCases)-1])
	ofLimits, ofNotes := names(limitCases[:len(limitCases)-1]), names(noteCases[:len(noteCases)-1])
	announced := names(observeCases[:len(observeCases)-1])
	const noteOfReader, noteOfPermits = "a reader writes no note", "an owner of permits writes no note"
	for name, c := range map[string]struct {
		has facts
		out []string // nil: those that ask for a queue are many
	}{
		"everything": {facts{everything, true}, lacks},
		"messages": {but(func(f *facts) { f.messages = false }), slices.Concat(lacks, announced, []string{"force takes a key from all its readers", "the first waiter is told when permits are held back", "a waiter above the limit is told to ask", "holders of permits are told of a limit"}, slices.DeleteFunc(
			names(eventCases, wantedCases), func(name string) bool { return name == "a release can ask for the key anew without waiting" }))},
		"Wanted":              {but(func(f *facts) { f.Retention = false }), slices.Concat(lacks, names(wantedCases))},
		"Tokens":              {but(func(f *facts) { f.Tokens = false }), slices.Concat(lacks, names(tokenCases, forceCases), shared, ofPermits, ofLimits, ofNotes, announced)},
		"Shared":              {but(func(f *facts) { f.Shared = false }), slices.Concat(lacks[:1], lacks[2:], shared, []string{"permits and readers exclude each other", "a limit concerns holders of permits only", noteOfReader})},
		"Permits":             {but(func(f *facts) { f.Permits = false }), slices.Concat(lacks[:2], lacks[3:], ofPermits, ofLimits, []string{noteOfPermits})},
		"Limits":              {but(func(f *facts) { f.Limits = false }), slices.Concat(lacks[:3], lacks[4:], ofLimits)},
		"Notes":               {but(func(f *facts) { f.Notes = false }), slices.Concat(lacks[:4], ofNotes, announced)},
		"Announcements":       {but(func(f *facts) { f.Announcements = false }), slices.Concat(lacks[1:], announced)},
		"what sessions spare": {but(func(f *facts) { f.Sessions = true }), slices.Concat(lacks, ofTTLs)},
		"FIFO":                {but(func(f *facts) { f.FIFO = false }), nil},
	} {
		asked := names(casesFor(c.has))
		out := slices.DeleteFunc(names(cases()), func(name string) bool { return slices.Contains(asked, name) })
		if c.out == nil {
			for _, name := range names(queueCases, livenessCases, eventCases, wantedCases) {
				if !slices.Contains(out, name) {
					t.Errorf("a store without a queue is asked whether %s", name)
				}
			}
			for _, name := range names(renewalCases[:5], callCases) {
				if !slices.Contains(asked, name) {
					t.Errorf("a store without a queue is not asked whether %s", name)
				}
			}
			continue
		}
		slices.Sort(out)
		slices.Sort(c.out)
		if !slices.Equal(out, c.out) {
			t.Errorf("without %s: got %q left out, want %q", name, out, c.out)
		}
	}
}

func names(groups ...[]testCase) (all []string) {
	for _, c := range slices.Concat(groups...) {
		all = append(all, c.name)
	}
	return all
}
