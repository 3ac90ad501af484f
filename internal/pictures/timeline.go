// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
)

// A timeline shows who does what when, in panels one below the other.
type timeline struct {
	title    string
	from, to float64 // the time at the left and at the right edge of each panel
	panels   []panel
	notes    []string
}

// A panel has a lane for each process and for the server.
type panel struct {
	title  string
	facts  []string
	lanes  []string
	bars   []bar
	arrows []arrow
	span   span
}

// A bar is what somebody does for a while.
type bar struct {
	lane     int
	from, to float64
	is       state
	text     string
	textAt   float64 // where the text begins; 0: at the bar's beginning
}

// A state is a bar's meaning, and the class that colors it.
type state string

const (
	holds state = "holds"
	waits state = "waits"
	free  state = "free" // the key of the server's lane has no holder
)

// An arrow is a command or a message, from one lane to another.
type arrow struct {
	from, to   int
	sent, came float64
	text       string
	before     bool // the text is left of the arrow
}

// A span is marked above the lanes.
type span struct {
	from, to float64
	text     string
}

// Lengths in a timeline, in pixels.
const (
	width    = 900
	margin   = 16
	names    = 96 // for the names of the lanes
	line     = 17 // of text
	pitch    = 48 // between lanes
	thick    = 18 // of a bar
	overhead = 30 // between a panel's facts and the middle of its first lane
	between  = 34 // panels
)

// style has the colors for light pages and for dark ones. The background is opaque, because the
// reader's system may prefer dark pages while the page is light.
const style = `<style>
text{font:12px -apple-system,"Segoe UI","Noto Sans",Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-size:18px;font-weight:600}.head{font-size:14px;font-weight:600}
.fact{fill:#59636e}.lane{text-anchor:end}.before{text-anchor:end}.center{text-anchor:middle}
.page{fill:#fff;stroke:#d1d9e0}
.holds{fill:#aceebb;stroke:#1a7f37}.waits{fill:#eaeef2;stroke:#818b98}.free{fill:#ffcecb;stroke:#cf222e;stroke-dasharray:4 3}
.arrow{stroke:#1f2328;stroke-width:1.3}.tip{fill:#1f2328}.span{stroke:#59636e}
@media (prefers-color-scheme:dark){
text{fill:#f0f6fc}.fact{fill:#9198a1}.page{fill:#0d1117;stroke:#3d444d}
.holds{fill:#12401f;stroke:#3fb950}.waits{fill:#212830;stroke:#656c76}.free{fill:#561a1a;stroke:#f85149}
.arrow{stroke:#f0f6fc}.tip{fill:#f0f6fc}.span{stroke:#9198a1}
}
</style>
<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker>
`

// A canvas is an SVG file that is being written, from the top to the bottom.
type canvas struct {
	bytes.Buffer

	timeline
	y float64
}

// svg draws the timeline.
func (t timeline) svg() []byte {
	c := &canvas{timeline: t, y: margin + 20}
	c.text(margin, c.y, "title", t.title)
	for _, p := range t.panels {
		c.y += between
		c.panel(p)
	}
	c.y += line
	for _, note := range t.notes {
		c.text(margin, c.y, "fact", note)
		c.y += line
	}
	height := strconv.Itoa(int(c.y))
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %d %s" role="img">`,
		width, height, width, height) +
		"\n<title>" + html.EscapeString(t.title) + "</title>\n" + style +
		fmt.Sprintf(`<rect class="page" x=".5" y=".5" width="%d" height="%s" rx="6"/>`, width-1, strconv.Itoa(int(c.y)-1)) + "\n"
	return append(append([]byte(head), c.Bytes()...), "</svg>\n"...)
}

// panel draws a panel below what is there.
func (c *canvas) panel(p panel) {
	c.text(margin, c.y, "head", p.title)
	for _, fact := range p.facts {
		c.y += line
		c.text(margin, c.y, "fact", fact)
	}
	c.y += overhead
	c.span(p.span)
	first := c.y + line
	middle := func(lane int) float64 { return first + float64(lane)*pitch }
	for i, name := range p.lanes {
		c.text(margin+names-10, middle(i)+4, "lane", name)
	}
	for _, b := range p.bars {
		left, right := c.x(b.from), c.x(b.to)
		fmt.Fprintf(c, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d" rx="3"/>`+"\n",
			b.is, left, middle(b.lane)-thick/2, right-left, thick)
		if b.textAt != 0 {
			left = c.x(b.textAt)
		}
		c.text(left+6, middle(b.lane)+4, "", b.text)
	}
	for _, a := range p.arrows {
		c.arrow(a, middle(a.from), middle(a.to))
	}
	c.y = middle(len(p.lanes)-1) + thick
}

// arrow draws an arrow between the edges of two lanes' bars. Its text is beside its lower end, where
// the lanes of different processes do not meet.
func (c *canvas) arrow(a arrow, from, to float64) {
	edge := float64(thick) / 2
	if from > to {
		edge = -edge
	}
	x, y, toX, toY := c.x(a.sent), from+edge, c.x(a.came), to-edge
	fmt.Fprintf(c, `<line class="arrow" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" marker-end="url(#tip)"/>`+"\n", x, y, toX, toY)
	at := max(y, toY) - float64(pitch-thick)/2 + 4
	if a.before {
		c.text(min(x, toX)-8, at, "before", a.text)
	} else {
		c.text(max(x, toX)+8, at, "", a.text)
	}
}

// span marks a time above the lanes.
func (c *canvas) span(s span) {
	left, right := c.x(s.from), c.x(s.to)
	fmt.Fprintf(c, `<path class="span" fill="none" d="M%.1f %.1fv-6H%.1fv6"/>`+"\n", left, c.y, right)
	c.text(right+8, c.y, "", s.text)
}

// x returns where a time is.
func (c *canvas) x(time float64) float64 {
	left := float64(margin + names)
	return left + (time-c.from)/(c.to-c.from)*(width-margin-left)
}

func (c *canvas) text(x, y float64, class, text string) {
	if text == "" {
		return
	}
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(c, `<text%s x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}
