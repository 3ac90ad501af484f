// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// resultsName is the file with the values of each round.
const resultsName = "results.json"

// A report has all results of a run.
type report struct {
	Machine machine   `json:"machine"`
	Peers   []setup   `json:"setups"`
	Notes   []string  `json:"notes,omitempty"`
	Results []result  `json:"-"`
	Figures []figures `json:"results"`
}

// A setup is a peer's name and settings.
type setup struct {
	Name    string `json:"name"`
	Setting string `json:"setting"`
}

// figures is a result in the form of the JSON file.
type figures struct {
	result

	Outcomes []peerFigures `json:"outcomes"`
}

type peerFigures struct {
	Peer      string              `json:"peer"`
	Left      string              `json:"leftOut,omitempty"`
	Rounds    int                 `json:"rounds"`
	Metrics   map[string]*summary `json:"metrics,omitempty"`
	OfFloor   *float64            `json:"ratioToFloor,omitempty"`
	OfBest    *float64            `json:"ratioToBestPeerOrBase,omitempty"`
	RawValues [][]*float64        `json:"values,omitempty"`
}

func newReport(ctx context.Context, w world, size sizes, missing string) (*report, error) {
	m, err := describe(ctx, w)
	if err != nil {
		return nil, err
	}
	r := &report{Machine: m}
	for _, p := range peers(w) {
		r.Peers = append(r.Peers, setup{p.name, p.setting})
	}
	if missing != "" {
		r.Notes = append(r.Notes, missing)
	}
	if size.rounds == short.rounds {
		r.Notes = append(r.Notes, "a short run: its figures mean little")
	}
	return r, nil
}

// failed returns an error if asynclock or the floor could not be measured, because that is a fault
// of this repository.
func (r *report) failed() error {
	var failures []error
	for _, res := range r.Results {
		for _, o := range res.Peers {
			if o.Failed && (o.Peer == asynclockPeer.name || o.Peer == floorPeer.name || res.Base != "") {
				failures = append(failures, fmt.Errorf("%s: %s %s", res.Workload, o.Peer, o.Left))
			}
		}
	}
	return errors.Join(failures...)
}

// print writes the tables for people.
func (r *report) print(to io.Writer) error {
	for _, res := range r.Results {
		fmt.Fprintf(to, "\n%s\n", res.Title)
		t := res.table()
		t.SetStyle(table.StyleLight)
		t.Style().Format.Header = text.FormatDefault // µ would become an M in capitals
		if _, err := fmt.Fprintln(to, t.Render()); err != nil {
			return err
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintln(to, note)
	}
	return nil
}

// table has a row for each peer and a column for each metric.
func (r result) table() table.Writer {
	t := table.NewWriter()
	floor, hasFloor := r.of(floorPeer.name)
	lowest, hasLowest := r.of(lowestFloorPeer.name)
	best, bestName, hasBest := r.compareTo()
	header := table.Row{""}
	for i, m := range r.Metrics {
		header = append(header, strings.TrimSpace(m.Name+" "+bracketed(m.Unit)))
		if i == 0 {
			header = append(header, "middle half")
		}
	}
	if hasFloor {
		header = append(header, "/ floor")
	}
	if hasLowest {
		header = append(header, "/ lowest floor")
	}
	if hasBest {
		header = append(header, "/ "+bestName)
	}
	t.AppendHeader(header)
	columns := []table.ColumnConfig{}
	for i := range header[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	for _, o := range r.Peers {
		row := table.Row{o.Peer}
		if len(o.Rounds) == 0 {
			t.AppendRow(append(row, o.Left))
			continue
		}
		for i := range r.Metrics {
			s := o.summary(i)
			row = append(row, figure(s.Median)+o.basis(i))
			if i == 0 {
				row = append(row, figure(s.Low)+" – "+figure(s.High))
			}
		}
		if hasFloor {
			row = append(row, figure(o.ratio(floor, 0)))
		}
		if hasLowest {
			row = append(row, figure(o.ratio(lowest, 0)))
		}
		if hasBest {
			row = append(row, figure(o.ratio(best, 0)))
		}
		t.AppendRow(row)
	}
	return t
}

func bracketed(unit string) string {
	if unit == "" {
		return ""
	}
	return "(" + unit + ")"
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

// write writes report.md, results.json and the charts. Without a directory it
// does nothing.
func (r *report) write(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, res := range r.Results {
		r.Figures = append(r.Figures, res.figures())
	}
	err := errors.Join(
		writeJSON(filepath.Join(dir, resultsName), r),
		os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.markdown()), 0o644),
	)
	for _, res := range r.Results {
		if res.charted() {
			err = errors.Join(err, res.chart(filepath.Join(dir, res.file())))
		}
	}
	return err
}

// file returns the name of a result's charts, without their extension.
func (r result) file() string {
	return strings.NewReplacer(" × ", "x", " ", "-").Replace(r.Workload)
}

// markdown returns the report as a page that shows its charts.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString("<!-- written by bench; run it again rather than change this -->\n\n# Results\n\n")
	b.WriteString(r.Machine.String())
	b.WriteString("\nA value is the median of the rounds; the middle half of the rounds lies between the two values beside it. " +
		"Ratios are medians of the ratios within a round. \"1 of 5 rounds\" means that the other rounds have no value.\n")
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	for _, res := range r.Results {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", res.Title, res.table().RenderMarkdown())
		if res.charted() {
			fmt.Fprintf(&b, "\n![%s](%s.svg)\n", res.Title, res.file())
		}
	}
	b.WriteString("\n## How each was set up\n\n")
	for _, p := range r.Peers {
		fmt.Fprintf(&b, "- **%s**: %s.\n", p.Name, p.Setting)
	}
	return b.String()
}

// figures converts the result for JSON, which has no NaN.
func (r result) figures() figures {
	f := figures{result: r}
	floor, _ := r.of(floorPeer.name)
	best, _, _ := r.compareTo()
	for _, o := range r.Peers {
		p := peerFigures{Peer: o.Peer, Left: o.Left, Rounds: len(o.Rounds)}
		if len(o.Rounds) > 0 {
			p.Metrics = make(map[string]*summary)
			for i, m := range r.Metrics {
				if s := o.summary(i); s.known() {
					p.Metrics[m.Name] = &s
				}
			}
			p.OfFloor, p.OfBest = number(o.ratio(floor, 0)), number(o.ratio(best, 0))
		}
		for _, row := range o.Rounds {
			var values []*float64
			for _, v := range row {
				values = append(values, number(v))
			}
			p.RawValues = append(p.RawValues, values)
		}
		f.Outcomes = append(f.Outcomes, p)
	}
	return f
}

func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
