// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

const threeNodes = "0 5460 10.0.0.1 7001\n5461 10922 10.0.0.2 7001\n10923 16383 10.0.0.3 7001"

func TestParseSlots(t *testing.T) {
	for text, want := range map[string][]slots{
		"0 100 10.0.0.1 7001\n101 16383 ::1 7002": {{0, 100, "10.0.0.1:7001"}, {101, 16383, "[::1]:7002"}},
		"0 16383 false 7001":                      {{0, 16383, ":7001"}},
		"":                                        nil,
		denied:                                    nil,
		"0 16384 h 1\n5 4 h 1\n-1 4 h 1\nx 4 h 1\n": nil,
	} {
		if got := parseSlots(text).ranges; !slices.Equal(got, want) {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

func TestState(t *testing.T) {
	with := func(before, after string) []change { return []change{{clusterInfo, before, after}} }
	whole, holes := parseSlots(threeNodes), parseSlots(strings.Replace(threeNodes, "10922", "10920", 1))
	for name, tt := range map[string]struct {
		t topology
		ruleCase
	}{
		"ok":                    {whole, ruleCase{guarded, nil, store.VerdictOK, "state is ok", ""}},
		"slots without servers": {holes, ruleCase{guarded, nil, store.VerdictFail, "2 of 16384 slots have no server", "fix"}},
		"a bad state":           {whole, ruleCase{guarded, with("cluster_state:ok", "cluster_state:fail"), store.VerdictFail, `"fail"`, "check"}},
		"a node that may fail":  {whole, ruleCase{guarded, with("pfail:0", "pfail:9"), store.VerdictWarn, "9 slots", "check"}},
		"a node that fails":     {whole, ruleCase{guarded, with("slots_fail:0", "slots_fail:9"), store.VerdictWarn, "9 slots", "check"}},
		"hidden nodes":          {topology{}, ruleCase{guarded, nil, store.VerdictNote, "only one was looked at", "+cluster|slots"}},
		"without rights":        {whole, ruleCase{guarded, with("", denied), store.VerdictNote, "may not ask for CLUSTER INFO", "+cluster|info"}},
	} {
		testRule(t, "cluster", func(_ Deployment, s *server) store.Finding { return tt.t.state(s) }, map[string]ruleCase{name: tt.ruleCase})
	}
}

// A slot belongs to whom the answer says, whatever else is in it, and a number is one.
func FuzzAnswers(f *testing.F) {
	for _, text := range healthy {
		f.Add(text, 1)
	}
	f.Add(threeNodes, 5461)
	f.Add("0 5 false 7001\n\r\n:::\n-1", 3)
	f.Fuzz(func(t *testing.T, text string, slot int) {
		for name, value := range ParseFacts(text) {
			if strings.ContainsAny(name+value, "\n") {
				t.Errorf("a field has a line's end: %q, %q", name, value)
			}
		}
		got := parseSlots(text)
		for _, r := range got.ranges {
			if r.first < 0 || r.last < r.first || r.last >= allSlots {
				t.Errorf("got %+v, want slots of a Cluster", r)
			}
		}
		if addr := got.addr(slot); addr != "" && (slot < 0 || slot >= allSlots) {
			t.Errorf("slot %d: got %q, want nobody", slot, addr)
		}
	})
}
