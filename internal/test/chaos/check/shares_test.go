// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// read is held by a reader.
func (h tale) read(op string, token int64, asked, told, valid history.Time) tale {
	h = h.held(op, token, asked, told, valid)
	h[len(h)-2].Mode = history.Shared
	return h
}

// reading makes the last record that of a reader.
func (h tale) reading() tale {
	h[len(h)-1].Mode = history.Shared
	return h
}

// ofLimit gives the last lease a limit of permits.
func (h tale) ofLimit(limit int) tale {
	h[len(h)-2].Limit = limit
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
		"readers one after the other, of two fences": tale{}.read("1", 5, 1, 2, 10).read("2", 6, 3, 11, 20),
		"readers of two fences, because of a loss":   tale{}.read("1", 5, 1, 2, 40).fault("FLUSHALL", 10, 11, true).read("2", 99, 12, 13, 50).held("3", 100, 14, 51, 60),
		"permits that nobody gave back":              tale{}.took("1", 3, 5, 1, 2, 2).took("2", 3, 6, 3, 4, 10),
		"a reader whose end nobody saw":              tale{}.lost("1", 5, 1, 2).reading().held("2", 6, 3, 60, 70),
		"a limit of those who have gone":             tale{}.took("1", 1, 5, 1, 2, 10).ofLimit(1).took("2", 3, 6, 3, 11, 20),
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
		"a writer beside a reader":             {tale{}.read("1", 5, 1, 2, 20).held("2", 6, 3, 10, 30), []string{"model", "overlap"}},
		"a reader beside a writer":             {tale{}.held("1", 5, 1, 2, 20).read("2", 6, 3, 10, 30), []string{"model", "overlap"}},
		"permits beside a reader":              {tale{}.read("1", 5, 1, 2, 20).took("2", 1, 6, 3, 10, 30), []string{"model", "overlap"}},
		"permits beside a writer":              {tale{}.held("1", 5, 1, 2, 20).took("2", 1, 6, 3, 10, 30), []string{"model", "overlap"}},
		"two writers among readers":            {tale{}.read("0", 3, 1, 2, 3).held("1", 5, 4, 5, 20).held("2", 6, 6, 10, 30), []string{"model", "overlap"}},
		"more permits than there are":          {tale{}.took("1", 2, 5, 1, 2, 20).took("2", 2, 6, 3, 10, 30), []string{"model", "permits"}},
		"one of many":                          {tale{}.took("1", 1, 5, 1, 2, 90).took("2", 1, 6, 3, 4, 90).took("3", 1, 7, 5, 6, 90).took("4", 1, 8, 7, 8, 9), []string{"model", "permits"}},
		"more permits, before the loss":        {tale{}.took("1", 3, 5, 1, 2, 20).took("2", 1, 6, 3, 10, 30).fault("FLUSHALL", 15, 16, true), []string{"model", "permits"}},
		"a writer with the token of readers":   {tale{}.read("1", 5, 1, 2, 3).held("2", 5, 4, 5, 6), []string{"model", "token order"}},
		"a reader with an older token":         {tale{}.held("1", 6, 1, 2, 3).read("2", 5, 4, 5, 6), []string{"model", "token order"}},
		"a reader with the token of a writer":  {tale{}.held("1", 5, 1, 2, 3).read("2", 5, 4, 5, 6), []string{"model", "token order"}},
		"permits older than a writer":          {tale{}.held("1", 6, 1, 2, 3).took("2", 1, 5, 4, 5, 6), []string{"model", "token order"}},
		"a writer older than permits":          {tale{}.took("1", 1, 6, 1, 2, 3).held("2", 5, 4, 5, 6), []string{"model", "token order"}},
		"two processes with one grant":         {tale{}.took("w1/1", 1, 5, 1, 2, 3).took("w2/1", 1, 5, 4, 5, 6), []string{"token order"}},
		"readers of two fences together":       {tale{}.read("1", 5, 1, 2, 20).read("2", 6, 3, 10, 30), []string{"model"}},
		"one of two fences, by a stale grant":  {tale{}.read("1", 5, 1, 19, 20).held("2", 6, 2, 3, 4), []string{"model"}},
		"permits granted beside more than fit": {tale{}.took("1", 2, 5, 1, 2, 20).took("2", 2, 6, 3, 4, 4), []string{"model"}},
		"a limit that others count on":         {tale{}.took("1", 1, 5, 1, 2, 20).ofLimit(1).took("2", 1, 6, 3, 4, 4), []string{"model"}},
		"a waiter forgotten beside readers":    {tale{}.read("1", 5, 1, 2, 3).held("2", 6, 4, 200, 210), []string{"idle"}},
	} {
		t.Run(name, func(t *testing.T) { bad.tale.wantRules(t, bad.want...) })
	}
}

// TestLongHistoriesOfSharesAreJudgedInWindows: as those of locks are.
func TestLongHistoriesOfSharesAreJudgedInWindows(t *testing.T) {
	t.Parallel()
	var good tale
	token := int64(1)
	for i := range history.Time(1500) {
		at, op := 20*i, strconv.Itoa(int(i))
		switch i % 5 {
		case 0:
			token++
			good = good.held(op, token, at+1, at+2, at+18)
		case 1:
			token++
			good = good.read(op+"a", token, at+1, at+2, at+9).read(op+"b", token, at+1, at+2, at+18).read(op+"c", token, at+2, at+10, at+17)
		default: // of which some are left of the time before
			token += 2
			good = good.took(op+"a", 1, token, at+1, at+2, at+12).took(op+"b", 2, token-1, at+1, at+3, at+18).took(op+"c", 1, token, at+2, at+13, at+17)
		}
	}
	for i := range good { // of a block of permits, one process takes them all
		good[i].Op = "w/" + good[i].Op
	}
	good.wantRules(t)
	for _, at := range []int{30, 2000, 3000} {
		bad := slices.Clone(good)
		i := slices.IndexFunc(bad[at:], func(r history.Record) bool { return r.Weight == 2 }) + at
		bad[i].Weight = 3
		bad.wantRules(t, "model", "permits")
	}
}

// TestManyLostSharesAreJudgedSoon: each may have been granted at any time, and a search that tries them in
// every order would not end.
func TestManyLostSharesAreJudgedSoon(t *testing.T) {
	t.Parallel()
	h := tale{}.fault("FLUSHALL", 5, 45, true)
	for i := range history.Time(60) {
		op := strconv.Itoa(int(i))
		h = h.held(op, int64(999-2*i), 1, 30+i, 40+i).read(op+"r", int64(1000-2*i), 1, 30+i, 40+i)
	}
	if r := h.wantRules(t); r.Excused == 0 {
		t.Error("nothing was excused")
	}
}
