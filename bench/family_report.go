// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A familyRow is a comparison with its result.
type familyRow struct {
	comparison comparison
	result     result
}

// A familyReport is a run of bench -families.
type familyReport struct {
	machine machine
	java    []string // versions
	notes   []string
	rounds  int
	took    time.Duration
	rows    []familyRow
}

func newFamilyReport(ctx context.Context, a arena, size familySizes) (*familyReport, error) {
	m, err := describe(ctx, a.world)
	if err != nil {
		return nil, err
	}
	r := &familyReport{machine: m, java: javaVersions(ctx, a), rounds: size.rounds}
	if size.operations == shortFamilies.operations {
		r.notes = append(r.notes, "A short run: its figures mean little.")
	}
	return r, nil
}

// busy notes the load before the run. Beside other work the figures mean little.
func (r *familyReport) busy(load string) {
	r.machine.Load = load
	minute, _, _ := strings.Cut(load, " ")
	if v, err := strconv.ParseFloat(minute, 64); err == nil && v > float64(r.machine.Cores) {
		r.notes = append(r.notes, "The machine had much other work: the figures are a check that the program runs.")
	}
}

// failed returns an error if asynclock or a floor could not be measured, because that is a fault of
// this repository.
func (r *familyReport) failed() error {
	var failures []error
	for _, row := range r.rows {
		for _, o := range row.result.Peers {
			if o.Failed && roleOf(o.Peer) != rolePeer {
				failures = append(failures, fmt.Errorf("%s: %s %s", row.result.Workload, o.Peer, o.Left))
			}
		}
	}
	return errors.Join(failures...)
}

func (r *familyReport) print(to io.Writer) error {
	_, err := io.WriteString(to, r.markdown())
	return err
}

// write writes families.md and families.json. Without a directory it does nothing.
func (r *familyReport) write(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var all struct {
		Machine machine   `json:"machine"`
		Java    []string  `json:"java,omitempty"`
		Results []figures `json:"results"`
	}
	all.Machine, all.Java = r.machine, r.java
	for _, row := range r.rows {
		all.Results = append(all.Results, row.result.figures())
	}
	return errors.Join(
		writeJSON(filepath.Join(dir, "families.json"), all),
		os.WriteFile(filepath.Join(dir, "families.md"), []byte(r.markdown()), 0o644),
	)
}

const familyIntroduction = `
Each contestant takes its turn in each of %d rounds, after one that does not count. A value is the median of the rounds.
A ratio is the median of the ratios within a round. "mutex" is asynclock's own Lock, and "floor" is SET NX PX with a
compare-and-delete. The run took %v.

The peers in Java time their own operations in a JVM that has done some thousands of them before. All contestants
in Redis have the same server, and so do those in ZooKeeper. ZooKeeper and etcd keep their data in memory, since
Redis writes nothing to disk either.
`

// markdown returns the report as a page.
func (r *familyReport) markdown() string {
	var b strings.Builder
	b.WriteString("<!-- written by bench -families; run it again rather than change this -->\n\n# Lock families beside peers\n\n")
	b.WriteString(r.machine.String())
	if len(r.java) > 0 {
		fmt.Fprintf(&b, "- Java: %s\n", strings.Join(r.java, ", "))
	}
	fmt.Fprintf(&b, familyIntroduction, r.rounds, r.took.Round(time.Second))
	for _, note := range r.notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	b.WriteString("\n## In short\n\n" + r.table().RenderMarkdown() + "\n")
	for _, row := range r.rows {
		b.WriteString(row.markdown())
	}
	return b.String()
}

// table has a row for each workload, about its first metric.
func (r *familyReport) table() table.Writer {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"workload", "asynclock", "peers", "floor", "target", "reached"})
	for _, row := range r.rows {
		var wanted, said []string
		for _, goal := range row.comparison.targets {
			wanted = append(wanted, goal.String(row.result.Metrics))
			said = append(said, goal.judge(row.result).text(goal))
		}
		peers := row.cell(rolePeer)
		if row.comparison.absent != "" {
			peers = append(peers, row.comparison.absent)
		}
		t.AppendRow(table.Row{
			row.result.Workload, lines(row.cell(roleOurs)), lines(peers), lines(row.cell(roleFloor)), lines(wanted), lines(said),
		})
	}
	return t
}

// lines are the lines of a cell.
func lines(all []string) string { return strings.Join(all, "<br/>") }

// cell says what the contestants of a role have reached in the first metric.
func (r familyRow) cell(who role) (said []string) {
	m := r.result.Metrics[0]
	us, measured := r.result.of(asynclockPeer.name)
	for _, o := range r.result.Peers {
		if roleOf(o.Peer) != who {
			continue
		}
		if len(o.Rounds) == 0 {
			said = append(said, o.Peer+": "+o.Left)
			continue
		}
		value := spaced(amount(o.summary(0).Median), m.Unit)
		switch {
		case o.Peer == asynclockPeer.name:
			value = m.Name + " " + value
		case measured && who == rolePeer:
			value = fmt.Sprintf("%s: %s (%s ×)", o.Peer, value, figure(o.ratio(us, 0)))
		default:
			value = o.Peer + ": " + value
		}
		said = append(said, value)
	}
	return said
}

// markdown is the workload's section, with all metrics and how the contestants were set up.
func (r familyRow) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n%s\n\n", r.result.Workload, r.result.Title, r.result.table().RenderMarkdown())
	for _, c := range r.comparison.contestants {
		fmt.Fprintf(&b, "- **%s**: %s.\n", c.name, c.setting)
	}
	return b.String()
}
