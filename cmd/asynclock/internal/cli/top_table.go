// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/asynclock/asynclock-go/internal/board"
)

// arrange filters and sorts the rows. The chosen key stays chosen; if it is gone, the one in its place is.
func (m *top) arrange() {
	place := m.place()
	m.shown = m.board.Sorted(m.filter, m.sortBy, m.reverse, m.now())
	if len(m.shown) > 0 && m.place() < 0 && m.mode != modeDetail {
		m.chosen = m.shown[min(max(place, 0), len(m.shown)-1)].Key
	}
	m.scroll()
}

// place returns the index of the chosen key, or -1.
func (m *top) place() int {
	return slices.IndexFunc(m.shown, func(r *board.Row) bool { return r.Key == m.chosen })
}

// move chooses a key that is so many rows further down.
func (m *top) move(by int) {
	if len(m.shown) > 0 {
		m.chosen = m.shown[min(max(m.place()+by, 0), len(m.shown)-1)].Key
	}
	m.scroll()
}

// scroll moves the table so that the chosen row is on the screen.
func (m *top) scroll() {
	place := max(m.place(), 0)
	m.first = min(m.first, place, max(0, len(m.shown)-m.page()))
	m.first = max(m.first, place-m.page()+1)
}

// page returns how many rows are on the screen.
func (m *top) page() int { return max(1, m.height-topMargin) }
