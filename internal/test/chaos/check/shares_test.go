// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// read is held by a reader.
func (h tale) read(op string, token int64, asked, told, valid history.Time) tale {
	h = h.held(op, token, asked, told, valid)
	h[len(h)-2].Mode = history.Shared
	return h
}

// took is held by a holder of permits, of which there are three.
func (h tale) took(op string, weight int, token int64, asked, told, valid history.Time) tale {
	h = h.held(op, token, asked, told, valid)
	r := &h[len(h)-2]
	r.Mode, r.Weight, r.Limit = history.Permits, weight, 3
	return h
}

func TestGoodHistoriesOfShares(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]tale{
		"readers together":                           tale{}.read("1", 5, 1, 2, 20).read("2", 5, 3, 4, 30).held("3", 9, 5, 31, 40),
		"a reader that asks later":                   tale{}.read("1", 5, 1, 2, 20).read("2", 5, 3, 4, 30),
		"readers before and after":                   tale{}.read("1", 5, 1, 2, 10).held("2", 7, 3, 11, 20).read("3", 9, 12, 21, 30),
		"permits up to the limit":                    tale{}.took("1", 1, 5, 1, 2, 20).took("2", 2, 6, 3, 4, 30).took("3", 1, 7, 5, 20, 40),
		"a permit that is passed on":                 tale{}.took("w1/1", 1, 5, 1, 2, 10).took("w2/1", 1, 9, 3, 4, 30).took("w1/2", 1, 5, 5, 10, 20),
		"permits and then a writer":                  tale{}.took("1", 3, 5, 1, 2, 20).held("2", 6, 3, 21, 30).took("3", 1, 7, 22, 31, 40),
		"more permits, because of a loss":            tale{}.took("1", 3, 5, 1, 2, 40).fault("FLUSHALL", 10, 11, true).took("2", 1, 6, 12, 13, 50),
		"a writer beside readers, because of a loss": tale{}.read("1", 5, 1, 2, 40).fault("FLUSHALL", 10, 11, true).held("2", 6, 12, 13, 50),
	} {
		t.Run(name, func(t *testing.T) { good.wantRules(t) })
	}
}

func TestBadHistoriesOfShares(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]struct {
		tale tale
		want []string
	}{
		"a writer beside a reader":           {tale{}.read("1", 5, 1, 2, 20).held("2", 6, 3, 10, 30), []string{"overlap"}},
		"a reader beside a writer":           {tale{}.held("1", 5, 1, 2, 20).read("2", 6, 3, 10, 30), []string{"overlap"}},
		"permits beside a reader":            {tale{}.read("1", 5, 1, 2, 20).took("2", 1, 6, 3, 10, 30), []string{"overlap"}},
		"permits beside a writer":            {tale{}.held("1", 5, 1, 2, 20).took("2", 1, 6, 3, 10, 30), []string{"overlap"}},
		"two writers among readers":          {tale{}.read("0", 3, 1, 2, 3).held("1", 5, 4, 5, 20).held("2", 6, 6, 10, 30), []string{"overlap"}},
		"more permits than there are":        {tale{}.took("1", 2, 5, 1, 2, 20).took("2", 2, 6, 3, 10, 30), []string{"permits"}},
		"one of many":                        {tale{}.took("1", 1, 5, 1, 2, 90).took("2", 1, 6, 3, 4, 90).took("3", 1, 7, 5, 6, 90).took("4", 1, 8, 7, 8, 9), []string{"permits"}},
		"more permits, before the loss":      {tale{}.took("1", 3, 5, 1, 2, 20).took("2", 1, 6, 3, 10, 30).fault("FLUSHALL", 15, 16, true), []string{"permits"}},
		"a writer with the token of readers": {tale{}.read("1", 5, 1, 2, 3).held("2", 5, 4, 5, 6), []string{"token order"}},
		"a reader with an older token":       {tale{}.held("1", 6, 1, 2, 3).read("2", 5, 4, 5, 6), []string{"token order"}},
		"a reader with the writer's token":   {tale{}.held("1", 5, 1, 2, 3).read("2", 5, 4, 5, 6), []string{"token order"}},
		"permits older than a writer":        {tale{}.held("1", 6, 1, 2, 3).took("2", 1, 5, 4, 5, 6), []string{"token order"}},
		"a writer older than permits":        {tale{}.took("1", 1, 6, 1, 2, 3).held("2", 5, 4, 5, 6), []string{"token order"}},
		"two processes with one grant":       {tale{}.took("w1/1", 1, 5, 1, 2, 3).took("w2/1", 1, 5, 4, 5, 6), []string{"token order"}},
		"a waiter forgotten beside readers":  {tale{}.read("1", 5, 1, 2, 3).held("2", 6, 4, 200, 210), []string{"idle"}},
	} {
		t.Run(name, func(t *testing.T) { bad.tale.wantRules(t, bad.want...) })
	}
}
