// SPDX-License-Identifier: Apache-2.0

package board

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/plain"
)

// A Column is one that rows can be sorted by.
type Column int

// The columns, in their order.
const (
	ByKey Column = iota
	ByMode
	ByHolder
	ByHeld
	ByTTL
	ByWaiting
	ByGrants
	Columns // how many there are
)

// Titles has what the columns are called.
var Titles = [Columns]string{
	ByKey: "KEY", ByMode: "MODE", ByHolder: "HOLDER", ByHeld: "HELD FOR", ByTTL: "TTL LEFT", ByWaiting: "WAITING", ByGrants: "GRANTS/S",
}

// IsFigure reports whether a column has figures. These are sorted from the largest.
func (c Column) IsFigure() bool { return c >= ByHeld }

// Cells returns what the columns of a row say.
func (b *Board) Cells(r *Row, now time.Time) (cells [Columns]string) {
	cells = [Columns]string{
		ByKey: plain.Text(r.Key), ByMode: "-", ByHolder: "-", ByHeld: "-", ByTTL: "-",
		ByWaiting: strconv.Itoa(r.Waiters), ByGrants: "-",
	}
	if b.rates {
		cells[ByGrants] = strconv.FormatFloat(b.Rate(r, now), 'f', 1, 64)
		if b.isFast(r) {
			cells[ByGrants] += "+"
		}
	}
	if !r.Held {
		return cells
	}
	cells[ByMode], cells[ByHolder], cells[ByTTL] = r.Mode.String(), plain.Text(r.Holder), plain.TTL(r.Remaining)
	cells[ByHeld] = r.HeldFor(now).Truncate(time.Second).String()
	if r.early {
		cells[ByHeld] += "+"
	}
	return cells
}

// Sorted returns the rows whose keys contain the text, as they are or as they are shown, by a column: texts from A, figures from the largest. Reverse is the
// other way round. Rows that are equal there are sorted by key.
func (b *Board) Sorted(text string, by Column, reverse bool, now time.Time) []*Row {
	rows := make([]*Row, 0, len(b.Rows))
	quoted := strings.ContainsAny(text, `\"`) // as keys are shown that can't be printed
	for _, r := range b.Rows {
		if strings.Contains(r.Key, text) || quoted && strings.Contains(plain.Text(r.Key), text) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(x, y *Row) int {
		order := compareBy(by, x, y, now)
		if reverse {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(x.Key, y.Key))
	})
	return rows
}

func compareBy(by Column, x, y *Row, now time.Time) int {
	switch by {
	case ByMode:
		return cmp.Compare(x.Mode, y.Mode)
	case ByHolder:
		return cmp.Compare(x.Holder, y.Holder)
	case ByHeld:
		return cmp.Compare(y.HeldFor(now), x.HeldFor(now))
	case ByTTL:
		return cmp.Compare(y.Remaining, x.Remaining)
	case ByWaiting:
		return cmp.Compare(y.Waiters, x.Waiters)
	case ByGrants:
		return cmp.Compare(len(y.grants), len(x.grants))
	default:
		return cmp.Compare(x.Key, y.Key)
	}
}

// Sums returns how many keys are held, and how many clients wait for any.
func (b *Board) Sums() (held, waiting int) { return b.held, b.waiting }
