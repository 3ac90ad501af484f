// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// sent is what an observer's channel sent of key k.
func (h tale) sent(whom string, token, at history.Time) tale {
	return append(h, history.Record{Kind: history.Seen, Whom: whom, Key: "k", How: "Observe", Begin: at * ms, End: at * ms, Token: int64(token)})
}

// looked is a look that was asked for and answered at these times.
func (h tale) looked(token, asked, told history.Time) tale {
	return append(h, history.Record{Kind: history.Seen, Whom: "w", Key: "k", How: "Current", Begin: asked * ms, End: told * ms, Token: int64(token)})
}

// with gives the last look a value.
func (h tale) with(value string) tale {
	h[len(h)-1].Value = value
	return h
}

func TestGoodTerms(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]tale{
		"terms that rise":            tale{}.sent("o", 5, 1).sent("o", 0, 2).sent("o", 6, 3),
		"one term, twice":            tale{}.sent("o", 5, 1).sent("o", 5, 2).looked(5, 3, 4).looked(5, 5, 6),
		"an observer that is behind": tale{}.sent("o", 6, 1).sent("p", 5, 2),
		"looks that overtake":        tale{}.looked(6, 2, 4).looked(5, 3, 5),
		"nobody, after a term":       tale{}.looked(5, 1, 2).looked(0, 3, 4),
		"a term that has begun":      tale{}.held("1", 5, 1, 2, 10).looked(5, 3, 4),
		"a look before the term":     tale{}.held("0", 4, 1, 2, 3).looked(4, 4, 6).held("1", 5, 4, 5, 10),
		"an older term after a loss": tale{}.held("1", 5, 1, 2, 3).looked(5, 4, 5).fault("failover", 6, 7, true).looked(4, 40, 41),
		"a value and its term":       tale{}.held("1", 5, 1, 2, 10).looked(5, 3, 4).with("1").sent("o", 5, 5).with("1"),
		"a value of nobody known":    tale{}.looked(5, 3, 4).with("w1.1"),
	} {
		t.Run(name, func(t *testing.T) { good.wantRules(t) })
	}
}

func TestBadTerms(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]tale{
		"an observer that goes back":                tale{}.sent("o", 6, 1).sent("o", 5, 2),
		"one that goes back after nobody":           tale{}.sent("o", 6, 1).sent("o", 0, 2).sent("o", 5, 3),
		"one that goes back, with a loss":           tale{}.sent("o", 6, 1).fault("FLUSHALL", 1, 2, true).sent("o", 5, 3),
		"a look that shows less than one before":    tale{}.looked(6, 1, 2).looked(5, 3, 4),
		"a look that shows less than a term":        tale{}.held("0", 4, 1, 2, 3).held("1", 5, 4, 5, 10).looked(4, 6, 7),
		"a look that shows less long after a loss":  tale{}.held("0", 5, 1, 2, 3).fault("FLUSHALL", 4, 5, true).looked(4, 80, 81),
		"a look that shows less long before a loss": tale{}.looked(6, 1, 2).looked(5, 3, 4).fault("FLUSHALL", 5, 6, true),
		"a look that shows less beside a pause":     tale{}.looked(6, 1, 2).fault("server paused", 2, 3, false).looked(5, 3, 4),
		"a value of another term":                   tale{}.held("1", 5, 1, 2, 3).held("2", 6, 4, 5, 9).looked(6, 6, 7).with("1"),
		"a value sent of another term":              tale{}.held("1", 5, 1, 2, 3).held("2", 6, 4, 5, 9).sent("o", 6, 6).with("1"),
	} {
		t.Run(name, func(t *testing.T) { bad.wantRules(t, "terms") })
	}
}

// TestLossOfOneElectionExcusesNoOther: a damaged record is one key's.
func TestLossOfOneElectionExcusesNoOther(t *testing.T) {
	t.Parallel()
	h := tale{}.held("1", 5, 1, 2, 3).fault("foreign write", 6, 7, true).looked(4, 10, 11)
	h[2].Key = "another"
	h.wantRules(t, "terms")
	h[2].Key = "k"
	h.wantRules(t)
}
