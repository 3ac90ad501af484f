// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// topMargin is how many lines of the screen are not rows: the summary, the titles, and the last line.
const topMargin = 3

// View draws the screen.
func (m *top) View() tea.View {
	var out strings.Builder
	out.WriteString(m.summary() + "\n")
	if m.mode == modeDetail {
		m.drawDetail(&out)
	} else {
		m.drawTable(&out)
	}
	out.WriteString(m.fit(m.lastLine()))
	lines := strings.Split(out.String(), "\n")
	view := tea.NewView(strings.Join(lines[:min(len(lines), max(m.height, 1))], "\n"))
	view.AltScreen, view.WindowTitle = true, "asynclock top"
	return view
}

// summary is the first line.
func (m *top) summary() string {
	switch {
	case m.mode == modeForce:
		from := plain.Text(m.target.Holder)
		if m.target.Token == 0 {
			from = "whoever holds it then, now " + from // a long name is cut
		}
		return m.fit(fmt.Sprintf("Take %s from %s? Both it and the next holder may believe for a while that they hold it.",
			plain.Text(m.target.Key), from))
	case m.board.Last == nil && m.failed == nil:
		return m.fit("asynclock top: listing the keys")
	}
	held, waiters := m.board.Sums()
	text := fmt.Sprintf("asynclock top: %d keys held, %d waiting", held, waiters)
	if m.filter != "" {
		text += fmt.Sprintf(", %d keys with %q", len(m.shown), m.filter)
	}
	if m.unread > 0 {
		text += fmt.Sprintf(", %d can't be read", m.unread)
	}
	if ago := m.board.Ago(m.now()); ago != "" {
		text += " (" + ago + ")"
	}
	return m.fit(text)
}

// lastLine is what the user types, what has gone wrong, or what the keys are.
func (m *top) lastLine() string {
	switch {
	case m.mode == modeForce:
		return "type the key, or esc: " + plain.Line(m.typed)
	case m.mode == modeFilter:
		return "keys with: " + plain.Line(m.typed)
	case m.failed != nil:
		return "the list is old: " + plain.Line(message(m.failed))
	case m.mode == modeDetail && m.unseen != nil:
		return "the key is as it was: " + plain.Line(message(m.unseen))
	case m.note != "":
		return m.note
	case m.mode == modeDetail:
		return "enter back  u unlock  q quit"
	}
	return "enter show  / filter  s sort  r reverse  u unlock  q quit"
}

func (m *top) drawTable(out *strings.Builder) {
	titles := board.Titles
	titles[m.sortBy] = "*" + titles[m.sortBy]
	out.WriteString("\x1b[1m" + m.line(titles) + "\x1b[m\n")
	for i := range m.page() {
		if i += m.first; i < len(m.shown) {
			line := m.line(m.board.Cells(m.shown[i], m.now()))
			if m.shown[i].Key == m.chosen {
				line = "\x1b[7m" + line + "\x1b[m"
			}
			out.WriteString(line)
		}
		out.WriteByte('\n')
	}
}

// widths returns how wide the columns are. Key and holder share what the others leave.
func (m *top) widths() [board.Columns]int {
	widths := [board.Columns]int{board.ByMode: 10, board.ByHeld: 10, board.ByTTL: 10, board.ByWaiting: 9, board.ByGrants: 10}
	free := m.width
	for _, width := range widths {
		free -= width
	}
	widths[board.ByKey] = max(8, free*3/5)
	widths[board.ByHolder] = max(8, free-widths[board.ByKey])
	return widths
}

// line aligns the cells of a row.
func (m *top) line(cells [board.Columns]string) string {
	var line strings.Builder
	for c, width := range m.widths() {
		text := ansi.Truncate(cells[c], width-1, "…")
		padding := strings.Repeat(" ", max(0, width-1-ansi.StringWidth(text)))
		if board.Column(c).IsFigure() {
			text, padding = padding, text
		}
		line.WriteString(text + padding + " ")
	}
	return m.fit(line.String())
}

// drawDetail shows one key, as inspect prints it.
func (m *top) drawDetail(out *strings.Builder) {
	var text strings.Builder
	if m.detail != nil {
		_ = printInfo(&text, *m.detail) // a Builder takes all
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i := range m.page() + 1 {
		if i < len(lines) {
			out.WriteString(m.fit(lines[i]))
		}
		out.WriteByte('\n')
	}
}

// fit cuts a line to the width of the screen.
func (m *top) fit(line string) string { return ansi.Truncate(line, max(m.width, 1), "…") }
