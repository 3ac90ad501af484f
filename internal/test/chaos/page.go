// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/check"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

//go:embed page.md
var introduction string

// A verdict is a report, and what run it is about.
type verdict struct {
	settings settings
	report   check.Report
}

// judge says what there is to say about the history in dir.
func judge(dir string) (v verdict, err error) {
	records, err := history.ReadDir(dir)
	if err != nil {
		return v, err
	}
	i := slices.IndexFunc(records, func(r history.Record) bool { return r.Kind == history.Run })
	if i < 0 {
		return v, fmt.Errorf("no history is in %s", dir)
	}
	made := records[i]
	v.settings = settings{seed: made.Seed, site: made.Site, duration: made.End.Duration(), build: made.Build}
	if err := json.Unmarshal([]byte(made.Crew), &v.settings.crew); err != nil {
		return v, fmt.Errorf("the crew of %s: %w", dir, err)
	}
	if len(v.settings.TTLs) == 0 {
		return v, fmt.Errorf("the crew of %s has no TTL", dir)
	}
	v.report = check.History(records, v.settings.limits())
	if v.report.Leases == 0 { // all rules hold of nothing
		v.report.Violations = append(v.report.Violations, check.Violation{Rule: "history", Text: "nobody has had a lease"})
	}
	return v, nil
}

// document is docs/chaos.md: the introduction, and the figures of each run.
func document(verdicts []verdict) string {
	var b strings.Builder
	b.WriteString(introduction)
	for _, v := range verdicts {
		v.write(&b)
	}
	return b.String()
}

func (v verdict) write(b *strings.Builder) {
	s, r, limits := v.settings, v.report, v.settings.limits()
	fmt.Fprintf(b, "\n### Seed %d, %s, %v\n\n", s.seed, s.site, s.duration)
	fmt.Fprintf(b, "%d processes of %d callers on %d keys, TTLs %v.\n", s.Workers, s.Callers, len(s.Keys), s.TTLs)
	if s.build != "" {
		fmt.Fprintf(b, "Commit %s.\n", s.build)
	}
	if s.Callers == 0 {
		b.WriteString("They run jobs, and nothing else.\n")
	} else if s.duration < 30*time.Minute || r.Leases < 1_000_000 {
		b.WriteString("A short run: a whole one has 30 minutes and 1,000,000 leases.\n")
	}
	row := func(what string, value any) { fmt.Fprintf(b, "| %s | %v |\n", what, value) }
	b.WriteString("\n| | |\n|---|---|\n")
	row("leases", r.Leases)
	row("of these, of readers", r.Shared)
	row("of these, of permits", r.Permits)
	row("of these, of one of several keys", r.Parts)
	row("readers that came in before a writer in the queue, and may have", r.Behind)
	row("of these, how late the client can have heard at most", r.Unheard.Round(time.Millisecond))
	row("readers that came in before a writer whom a fault may have moved in the queue: not judged", r.Moved)
	row("looks at who leads", r.Looks)
	row("runs of jobs", r.Runs)
	row("of these, repeated, because a loss of data excuses it", r.Repeats)
	row("intervals with a run", r.Slots)
	row("intervals in which others found nothing to do", r.Reached)
	row("intervals in whose second half the store could be reached", r.Due)
	row("of these, with so few faults that they need a run", r.Firm)
	row("of the others, without a run", r.Undone)
	for _, name := range slices.Sorted(maps.Keys(r.Failed)) {
		row("requests that failed: "+name, r.Failed[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Writes)) {
		row("writes accepted by the resource "+name, r.Writes[name])
	}
	row("stale writes refused by the resources", r.Refused)
	row("overlaps of trusted leases that a loss of data excuses", r.Excused)
	row("leases with a token that was overtaken, likewise", r.Overtaken)
	row("longest wait", r.Longest.Round(time.Millisecond))
	row("R, of the bounds", limits.Repair)
	row("Q, of the bounds", limits.Turns)
	row("faults", r.Strikes())
	row("violations", len(r.Violations))
	b.WriteString("\n| fault | times | worst recovery | overlaps it excuses |\n|---|---|---|---|\n")
	for _, f := range r.Faults {
		fmt.Fprintf(b, "| %s | %d | %v | %d |\n", f.Name, f.Count, f.Worst.Round(time.Millisecond), f.Excused)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(b, "\nViolation: %v\n", v)
	}
}
