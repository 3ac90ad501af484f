// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// resultsName is the file with the values of each round.
const resultsName = "results.json"

// A report has all results of a run.
type report struct {
	Machine machine  `json:"machine"`
	Java    []string `json:"java,omitempty"` // versions
	Peers   []setup  `json:"setups,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Results []result `json:"results"`
	// Families have another page.
	families bool
	rounds   int
	took     time.Duration
}

// A setup is a peer's name and settings.
type setup struct {
	Name    string `json:"name"`
	Setting string `json:"setting"`
}

func newReport(ctx context.Context, w world, f flags, size sizes, load string) *report {
	r := &report{Machine: describe(ctx, w, load), families: f.families, rounds: size.rounds}
	if f.short {
		r.Notes = append(r.Notes, "A short run: its figures mean little.")
	}
	r.busy()
	if f.families {
		r.Java = javaVersions(ctx, w)
		return r
	}
	for _, p := range among(locks, f.among) {
		if w.missing[p.needs] == "" {
			r.Peers = append(r.Peers, setup{p.name, p.setting})
		}
	}
	return r
}

// busy notes the load before the run. Beside other work the figures mean little.
func (r *report) busy() {
	minute, _, _ := strings.Cut(r.Machine.Load, " ")
	if v, err := strconv.ParseFloat(minute, 64); err == nil && v > float64(r.Machine.Cores) {
		r.Notes = append(r.Notes, "The machine had much other work: the figures are a check that the program runs.")
	}
}

// failed returns an error if something of this repository could not be measured.
func (r *report) failed() error {
	var failures []error
	for _, res := range r.Results {
		for _, o := range res.Peers {
			if o.fault != nil {
				failures = append(failures, fmt.Errorf("%s: %w", res.Workload, o.fault))
			}
		}
	}
	return errors.Join(failures...)
}

// redraw writes report.md and the charts of a directory again, from its results.json. It measures
// nothing.
func redraw(dir string) error {
	if dir == "" {
		return errors.New("-redraw needs the directory of a report: -out")
	}
	r, err := readReport(filepath.Join(dir, resultsName))
	if err != nil {
		return err
	}
	return r.write(dir)
}

// readReport reads the report from what its figures were written to.
func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, res := range r.Results {
		if err := res.sound(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}

// sound returns an error if a result that was read can't be one that was written.
func (r result) sound() error {
	if name := r.file(); name == "" || filepath.Base(name) != name {
		return fmt.Errorf("the name %q can't be a file's", r.Workload)
	}
	if len(r.Metrics) == 0 {
		return fmt.Errorf("%q has no metrics", r.Workload)
	}
	for _, o := range r.Peers {
		for _, values := range o.Rounds {
			if len(values) != len(r.Metrics) {
				return fmt.Errorf("%q: a round of %s has %d values for %d metrics", r.Workload, o.Peer, len(values), len(r.Metrics))
			}
		}
	}
	return nil
}

// write writes a page, the figures, and the charts. Without a directory it does nothing.
func (r *report) write(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	page, figures := "report.md", resultsName
	if r.families {
		page, figures = "families.md", "families.json"
	}
	for _, res := range r.Results {
		res.derive()
	}
	err := errors.Join(
		writeJSON(filepath.Join(dir, figures), r),
		os.WriteFile(filepath.Join(dir, page), []byte(r.markdown()), 0o644),
	)
	for _, res := range r.Results {
		if res.charted() {
			err = errors.Join(err, res.chart(filepath.Join(dir, res.file())))
		}
	}
	return err
}

// file returns the name of a result's chart, without its extension.
func (r result) file() string {
	return strings.NewReplacer(" × ", "x", " ", "-").Replace(r.Workload)
}

// These find the line breaks inside a peer of a result, and the one at its end. A string in JSON has none.
var (
	deeper = regexp.MustCompile(`\n {9,}`)
	ending = regexp.MustCompile(`\n {8}([\]}])`)
)

// writeJSON writes a report's figures with a line for each peer of a result. Indented all the way, each
// number would have a line of its own.
func writeJSON(path string, figures any) error {
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	data = ending.ReplaceAll(deeper.ReplaceAll(data, []byte(" ")), []byte(" $1"))
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

const introduction = `
A value is the median of the rounds; the middle half of the rounds lies between the two values beside it. ` +
	`Ratios are medians of the ratios within a round. "1 of 5 rounds" means that the other rounds have no value.
`

// markdown returns the report as a page.
func (r *report) markdown() string {
	var b strings.Builder
	if r.families {
		b.WriteString("<!-- written by bench -families; run it again rather than change this -->\n\n# Lock families beside peers\n\n" + r.Machine.String())
		if len(r.Java) > 0 {
			fmt.Fprintf(&b, "- Java: %s\n", strings.Join(r.Java, ", "))
		}
		fmt.Fprintf(&b, familyIntroduction, r.rounds, r.took.Round(time.Second))
	} else {
		b.WriteString("<!-- written by bench; run it again rather than change this -->\n\n# Results\n\n" + r.Machine.String() + introduction)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	if r.families {
		b.WriteString("\n## In short\n\n" + r.inShort().RenderMarkdown() + "\n")
	}
	for _, res := range r.Results {
		b.WriteString(res.markdown(r.families))
	}
	if !r.families {
		b.WriteString("\n## How each was set up\n\n" + list(r.Peers))
	}
	return b.String()
}

func list(peers []setup) string {
	var b strings.Builder
	for _, p := range peers {
		fmt.Fprintf(&b, "- **%s**: %s.\n", p.Name, p.Setting)
	}
	return b.String()
}

// markdown is the section of a workload.
func (r result) markdown(family bool) string {
	table := r.table().RenderMarkdown()
	if family {
		var peers []setup
		for _, p := range r.load.peers {
			peers = append(peers, setup{p.name, p.setting})
		}
		return fmt.Sprintf("\n## %s\n\n%s.\n\n%s\n\n%s", r.Workload, r.Title, table, list(peers))
	}
	if r.charted() {
		table += fmt.Sprintf("\n\n![%s](%s.svg)", r.Title, r.file())
	}
	return fmt.Sprintf("\n## %s\n\n%s\n", r.Title, table)
}

// table has a row for each peer and a column for each metric, and for each that peers are compared to.
func (r result) table() table.Writer {
	t := newTable()
	header := table.Row{""}
	for i, m := range r.Metrics {
		name := m.Name
		if m.Unit != "" {
			name += " (" + m.Unit + ")"
		}
		if header = append(header, name); i == 0 {
			header = append(header, "middle half")
		}
	}
	var others []outcome
	_, best, _ := r.compareTo()
	for _, name := range []string{floorPeer.name, lowestFloorPeer.name, best} {
		if o, ok := r.of(name); ok {
			others, header = append(others, o), append(header, "/ "+name)
		}
	}
	t.AppendHeader(header)
	var columns []table.ColumnConfig
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	for _, o := range r.Peers {
		t.AppendRow(r.rowOf(o, others))
	}
	return t
}

func newTable() table.Writer {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault // µ would become an M in capitals
	return t
}

func (r result) rowOf(o outcome, others []outcome) table.Row {
	if len(o.Rounds) == 0 {
		return table.Row{o.Peer, o.Left}
	}
	cells := table.Row{o.Peer}
	for i := range r.Metrics {
		s := o.summary(i)
		if cells = append(cells, figure(s.Median)+o.basis(i)); i == 0 {
			cells = append(cells, figure(s.Low)+" – "+figure(s.High))
		}
	}
	for _, other := range others {
		cells = append(cells, figure(o.ratio(other, 0)))
	}
	return cells
}

// figure formats a number with three significant digits, or with all digits before the point.
func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}
