// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// part makes the last lease one of a whole, whose own Valid said no at lapsed; 0: it never did.
func (h tale) part(whole string, lapsed history.Time) tale {
	h[len(h)-2].Whole = whole
	h[len(h)-1].Lapsed = lapsed * ms
	return h
}

func TestWholes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tale tale
		want []string
	}{
		"one that ends with its part":         {tale{}.held("7.1", 5, 1, 2, 20).part("7", 20), nil},
		"one whose part never ended":          {tale{}.held("7.1", 5, 1, 2, 20).part("7", 0), nil},
		"one that outlives its part":          {tale{}.held("7.1", 5, 1, 2, 20).part("7", 19), []string{"whole"}},
		"the same beside a loss":              {tale{}.fault("FLUSHALL", 3, 4, true).held("7.1", 5, 1, 2, 20).part("7", 19), []string{"whole"}},
		"one beside another's lease":          {tale{}.held("7.1", 5, 1, 2, 20).part("7", 0).held("8", 6, 3, 10, 30), []string{"model", "overlap"}},
		"a key that was had long before":      {tale{}.held("1", 4, 1, 2, 3).held("7.1", 5, 4, 300, 310).part("7", 0), nil},
		"that key for longer than all queued": {tale{}.held("1", 4, 1, 2, 3).held("7.1", 5, 4, 600, 610).part("7", 0), []string{"waiting"}},
	} {
		t.Run(name, func(t *testing.T) { c.tale.wantRules(t, c.want...) })
	}
}

// TestRequestForSeveralKeysIsOne: also if it fails.
func TestRequestForSeveralKeysIsOne(t *testing.T) {
	t.Parallel()
	h := tale{}.held("7.1", 5, 1, 2, 20).part("7", 0).failed("8.1", 3, 4).failed("8.2", 3, 4)
	h[2].Whole, h[3].Whole = "8", "8"
	if r := h.wantRules(t); r.Parts != 1 || r.Failed["unreachable"] != 1 {
		t.Errorf("got %d leases of one of several keys, failed %v, want 1 and 1", r.Parts, r.Failed)
	}
}
