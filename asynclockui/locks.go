// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/store"
)

// columnNames are what the columns are called in an address.
var columnNames = [board.Columns]string{
	board.ByKey: "key", board.ByMode: "mode", board.ByHolder: "holder", board.ByHeld: "held", board.ByTTL: "ttl",
	board.ByWaiting: "waiting", board.ByGrants: "grants",
}

// A choice is which keys are shown, and in which order. The address has it.
type choice struct {
	Filter  string
	By      board.Column
	Reverse bool
}

func choiceOf(q url.Values) choice {
	by := slices.Index(columnNames[:], q.Get("sort"))
	filter := q.Get("q")
	return choice{filter[:min(len(filter), store.MaxKeyLen)], board.Column(max(by, 0)), q.Get("reverse") == "1"}
}

// SortName is what the column is called in an address.
func (c choice) SortName() string { return columnNames[c.By] }

// address returns the choice as a part of an address.
func (c choice) address() string {
	q := url.Values{}
	if c.Filter != "" {
		q.Set("q", c.Filter)
	}
	if c.By != board.ByKey {
		q.Set("sort", c.SortName())
	}
	if c.Reverse {
		q.Set("reverse", "1")
	}
	return q.Encode()
}

// A locksView is what the template locks shows.
type locksView struct {
	choice

	Titles        []title
	Rows          []rowView
	Held, Waiting int
	More          int    // keys that are not shown
	Unread        int    // keys that can't be read
	Ago           string // when all this was so; empty: it is as of now
	Problem       string
}

// A title is the head of a column, with the address that sorts by it.
type title struct{ Name, Text, Address, Sorted string }

// A rowView is a row of the table.
type rowView struct {
	Key, Address string
	Cells        []cell // all others
}

type cell struct {
	Label, Text string
	Number      bool
}

func (p *page) showLocks(w http.ResponseWriter, r *http.Request) {
	c := choiceOf(r.URL.Query())
	p.showLive(w, r, "locks", c.address(), c, func(ctx context.Context) (any, error) { return p.locksView(ctx, c) })
}

func (p *page) locksView(ctx context.Context, c choice) (v locksView, err error) {
	err = p.live.look(ctx, func(now time.Time) { v = p.live.view(c, now) })
	return v, err
}

func (l *live) view(c choice, now time.Time) locksView {
	v := locksView{choice: c, Unread: l.unread, Ago: l.board.Ago(now), Problem: problem(l.failed)}
	v.Held, v.Waiting = l.board.Sums()
	for by, text := range board.Titles {
		to, sorted := choice{c.Filter, board.Column(by), false}, ""
		if c.By == to.By {
			to.Reverse, sorted = !c.Reverse, "ascending"
			if c.Reverse != to.By.IsFigure() {
				sorted = "descending"
			}
		}
		v.Titles = append(v.Titles, title{columnNames[by], sentenceCase(text), "./?" + to.address(), sorted})
	}
	rows := l.rows(c, now)
	v.More = rows.all - len(rows.first)
	for _, r := range rows.first {
		row := rowView{Address: addressOf("key", r.Key)}
		for by, text := range l.board.Cells(r, now) {
			if board.Column(by) == board.ByKey {
				row.Key = text
				continue
			}
			row.Cells = append(row.Cells, cell{v.Titles[by].Text, text, board.Column(by).IsFigure()})
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// sentenceCase returns a title of the command top as one of a page.
func sentenceCase(title string) string {
	if lower := strings.ToLower(title); !strings.HasPrefix(title, "TTL") {
		return strings.ToUpper(lower[:1]) + lower[1:]
	}
	return "TTL" + strings.ToLower(title[3:])
}

// addressOf returns the address of a page about a key.
func addressOf(page, key string) string { return page + "?" + url.Values{"key": {key}}.Encode() }

// problem returns what an error says, on one line; empty for none.
func problem(err error) string {
	if err == nil {
		return ""
	}
	return plain.Line(err.Error())
}
