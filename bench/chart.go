// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image/color"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// charted reports whether a result has a chart: the README and docs/performance.md show these. The
// others have tables.
func (r result) charted() bool {
	return slices.Contains([]string{"uncontended", "hot 8 × 8", "hot 32 × 1", "handoff"}, r.Workload)
}

// chart draws a result's first metric: a dot for each peer at its median, with a line over the
// middle half of the rounds. The scale is logarithmic, since the result is ratios.
func (r result) chart(path string) error {
	shown := dots{}
	for _, o := range slices.Backward(r.Peers) { // the first one is drawn at the top
		if s := o.summary(0); s.known() && s.Median > 0 {
			shown.names = append(shown.names, o.Peer)
			shown.values = append(shown.values, s)
		}
	}
	if len(shown.names) == 0 {
		return nil
	}
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} // as wide as Arial
	p := plot.New()
	p.Title.Text = r.Title
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text = r.Metrics[0].Name + " in " + r.Metrics[0].Unit + better(r.Metrics[0])
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = ticks{}
	p.NominalY(shown.names...)
	p.Y.Tick.Label.Font.Size = vg.Points(9)
	p.Y.Label.Text = " " // room: names are wider than measured
	p.Y.Min, p.Y.Max = -0.5, float64(len(shown.names))-0.5
	p.Add(plotter.NewGrid())

	points, err := plotter.NewScatter(shown)
	if err != nil {
		return err
	}
	points.GlyphStyleFunc = func(i int) draw.GlyphStyle {
		return draw.GlyphStyle{Color: shown.color(i), Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
	}
	spread, err := plotter.NewXErrorBars(shown)
	if err != nil {
		return err
	}
	labels, err := plotter.NewLabels(shown)
	if err != nil {
		return err
	}
	labels.Offset = vg.Point{X: vg.Points(-8), Y: vg.Points(6)}
	p.Add(spread, points, labels)
	// Room for the labels, and more than one tick even if all are alike.
	p.X.Min, p.X.Max = shown.low()/1.6, shown.high()*1.6

	height := vg.Length(len(shown.names))*vg.Points(30) + vg.Points(70)
	canvas, err := draw.NewFormattedCanvas(vg.Points(560), height, "svg")
	if err != nil {
		return err
	}
	p.Draw(draw.Crop(draw.New(canvas), 0, vg.Points(-12), 0, 0)) // half of a number may stand beyond the axis
	var drawn bytes.Buffer
	if _, err := canvas.WriteTo(&drawn); err != nil {
		return err
	}
	adapted, err := adapt(drawn.String())
	if err != nil {
		return err
	}
	return os.WriteFile(path+".svg", []byte(adapted), 0o644)
}

// ticks labels powers of ten, or each line if there are fewer than two of these.
type ticks struct{}

// Ticks implements [plot.Ticker].
func (ticks) Ticks(low, high float64) []plot.Tick {
	all := plot.LogTicks{Prec: -1}.Ticks(low, high)
	labelled := make(map[float64]bool) // powers of ten are there twice, once with a label
	for _, t := range all {
		if t.Label != "" && t.Value >= low && t.Value <= high {
			labelled[t.Value] = true
		}
	}
	if len(labelled) < 2 {
		for i, t := range all {
			if !labelled[t.Value] {
				all[i].Label = figure(t.Value)
			}
		}
	}
	return all
}

func better(m metric) string {
	if m.HigherIsBetter {
		return " (more is better)"
	}
	return " (less is better)"
}

// dots are the points of a chart, the first at the bottom.
type dots struct {
	names  []string
	values []summary
}

func (d dots) Len() int                { return len(d.names) }
func (d dots) XY(i int) (x, y float64) { return d.values[i].Median, float64(i) }
func (d dots) Label(i int) string      { return figure(d.values[i].Median) }
func (d dots) XError(i int) (low, high float64) {
	s := d.values[i]
	return s.Low - s.Median, s.High - s.Median
}

func (d dots) low() float64 {
	low := d.values[0].Low
	for _, s := range d.values {
		low = min(low, s.Low)
	}
	return low
}

func (d dots) high() float64 {
	high := d.values[0].High
	for _, s := range d.values {
		high = max(high, s.High)
	}
	return high
}

func (d dots) color(i int) color.Color {
	switch {
	case d.names[i] == floorPeer.name, d.names[i] == lowestFloorPeer.name:
		return color.Gray{Y: 140}
	case strings.Contains(d.names[i], asynclockPeer.name):
		return color.RGBA{R: 200, G: 60, B: 20, A: 255}
	default:
		return color.RGBA{R: 40, G: 80, B: 160, A: 255}
	}
}
