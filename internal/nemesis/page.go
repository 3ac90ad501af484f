// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/nemesis/check"
)

//go:embed page.md
var introduction string

// document is docs/chaos.md: the introduction, and the figures of a run.
func document(s settings, r check.Report) string {
	var b strings.Builder
	b.WriteString(introduction)
	limits := s.limits()
	fmt.Fprintf(&b, "\nSeed %d, faults for %v; from the first request to the last answer %v.\n", s.seed, s.duration, r.Span.Round(time.Second))
	fmt.Fprintf(&b, "%d processes of %d callers on %d keys, TTLs %v; site: %s.\n\n", s.workers, s.callers, len(s.keys), s.ttls, s.site)
	if s.duration < 30*time.Minute || r.Leases < 1_000_000 {
		b.WriteString("It is shorter than the run of 30 minutes and 1,000,000 leases that this page is to show in the end.\n\n")
	}
	row := func(what string, value any) { fmt.Fprintf(&b, "| %s | %v |\n", what, value) }
	b.WriteString("| | |\n|---|---|\n")
	row("leases", r.Leases)
	for _, name := range slices.Sorted(maps.Keys(r.Failed)) {
		row("requests that failed: "+name, r.Failed[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Writes)) {
		row("writes accepted by the resource "+name, r.Writes[name])
	}
	row("stale writes refused by the resources", r.Refused)
	row("overlaps of trusted leases that a loss of data excuses", r.Excused)
	row("longest wait", r.Longest.Round(time.Millisecond))
	row("R, of the bounds", limits.Repair)
	row("Q, of the bounds", limits.Turns)
	row("violations", len(r.Violations))
	b.WriteString("\n| fault | times | worst recovery | overlaps it excuses |\n|---|---|---|---|\n")
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "| %s | %d | %v | %d |\n", f.Name, f.Count, f.Worst.Round(time.Millisecond), f.Excused)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\nViolation: %v\n", v)
	}
	return b.String()
}
