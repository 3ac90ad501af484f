// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high float64
		want      []string
	}{
		{850, 2500, []string{"900", "1000", "2000"}},
		{350, 950, []string{"400", "500", "600", "700", "800", "900"}},
		{90, 2600, []string{"100", "1000"}},
	} {
		var got []string
		for _, tick := range (ticks{}).Ticks(c.low, c.high) {
			if tick.Label != "" && tick.Value >= c.low && tick.Value <= c.high {
				got = append(got, tick.Label)
			}
		}
		slices.SortFunc(got, func(a, b string) int { return len(a)*1000 - len(b)*1000 + slices.Compare([]byte(a), []byte(b)) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
