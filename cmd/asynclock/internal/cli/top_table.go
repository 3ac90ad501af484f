// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A column is one that the table can be sorted by.
type column int

const (
	byKey column = iota
	byMode
	byHolder
	byHeld
	byTTL
	byWaiting
	byGrants
	columns
)

// columnTitles has the titles, and how wide the columns are. The first two share what is left.
var columnTitles = [columns]struct {
	title string
	width int
	right bool
}{
	byKey: {"KEY", 0, false}, byMode: {"MODE", 10, false}, byHolder: {"HOLDER", 0, false}, byHeld: {"HELD FOR", 10, true},
	byTTL: {"TTL LEFT", 10, true}, byWaiting: {"WAITING", 9, true}, byGrants: {"GRANTS/S", 10, true},
}

// cells returns what the columns of a row say.
func (m *top) cells(r *boardRow) (cells [columns]string) {
	now := m.now()
	cells[byKey] = printable(r.Key)
	cells[byWaiting] = strconv.Itoa(r.Waiters)
	cells[byGrants] = strconv.FormatFloat(m.board.rate(r, now), 'f', 1, 64)
	for c := range cells {
		if cells[c] == "" {
			cells[c] = "-"
		}
	}
	if r.Held {
		cells[byMode], cells[byHolder], cells[byTTL] = r.Mode.String(), printable(r.Holder), ttlLeft(r.Remaining)
		cells[byHeld] = r.held(now).Truncate(time.Second).String()
		if r.early {
			cells[byHeld] += "+"
		}
	}
	return cells
}

// arrange filters and sorts the rows. The chosen key stays chosen; if it is gone, the one in its place is.
func (m *top) arrange() {
	place := m.place()
	m.shown = m.shown[:0]
	for _, r := range m.board.rows {
		if strings.Contains(r.Key, m.filter) {
			m.shown = append(m.shown, r)
		}
	}
	now := m.now()
	slices.SortFunc(m.shown, func(a, b *boardRow) int {
		order := m.compare(a, b, now)
		if m.reverse {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.Key, b.Key))
	})
	if len(m.shown) > 0 && m.place() < 0 && m.mode != modeDetail {
		m.chosen = m.shown[min(max(place, 0), len(m.shown)-1)].Key
	}
	m.scroll()
}

// compare orders two rows by the column: texts from A, figures from the largest.
func (m *top) compare(a, b *boardRow, now time.Time) int {
	switch m.sortBy {
	case byMode:
		return cmp.Compare(a.Mode, b.Mode)
	case byHolder:
		return cmp.Compare(a.Holder, b.Holder)
	case byHeld:
		return cmp.Compare(b.held(now), a.held(now))
	case byTTL:
		return cmp.Compare(b.Remaining, a.Remaining)
	case byWaiting:
		return cmp.Compare(b.Waiters, a.Waiters)
	case byGrants:
		return cmp.Compare(len(b.grants), len(a.grants))
	default:
		return cmp.Compare(a.Key, b.Key)
	}
}

// place returns the index of the chosen key, or -1.
func (m *top) place() int {
	return slices.IndexFunc(m.shown, func(r *boardRow) bool { return r.Key == m.chosen })
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
