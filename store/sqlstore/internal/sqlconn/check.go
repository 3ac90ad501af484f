// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/asynclock/asynclock-go/internal/storecheck"
	"github.com/asynclock/asynclock-go/store"
)

// Check reports what the server is like, and then what the probes of a store find. A Conn that is nil fails.
func (c *Conn) Check(ctx context.Context, report func(store.Finding), zero error, own ...storecheck.Probe) {
	if c == nil {
		report(store.Finding{Check: "server", Verdict: store.VerdictFail, Fact: zero.Error()})
		return
	}
	var probes []storecheck.Probe
	for _, q := range c.dialect.questions {
		probes = append(probes, c.probe(q))
	}
	storecheck.Run(ctx, report, slices.Concat(probes, []storecheck.Probe{c.clock()}, own)...)
}

// A question is what to ask a server, and how to judge its answer.
type question struct {
	check string
	asks  []string // statements; all values of their first rows are the answer
	judge func(answer []string) store.Finding
}

// probe asks one question.
func (c *Conn) probe(q question) storecheck.Probe {
	return storecheck.Probe{Check: q.check, Find: func(ctx context.Context) (_ store.Finding, err error) {
		var answer []string
		for _, statement := range q.asks {
			if answer, err = c.row(ctx, answer, statement); err != nil {
				return store.Finding{Fix: toRun + statement}, err
			}
		}
		return q.judge(answer), nil
	}}
}

// toRun begins what to do about a statement that is denied.
const toRun = "grant the store's user what it takes to run: "

// Unfit is the finding of a failed look at tables and routines. The fix is about those that are not as required.
func (c *Conn) Unfit(err error, fix string) (store.Finding, error) {
	var schema *SchemaError
	if errors.As(err, &schema) || c.dialect.missing(err) {
		return store.Finding{Verdict: store.VerdictFail, Fact: err.Error(), Fix: fix}, nil
	}
	return store.Finding{Fix: "grant the store's user the rights that docs/stores/sql.md lists"}, err
}

// row appends the values of a statement's first row.
func (c *Conn) row(ctx context.Context, values []string, statement string) ([]string, error) {
	rows, err := c.db.QueryContext(ctx, statement)
	if err != nil {
		return nil, c.Failure(err)
	}
	defer func() { _ = rows.Close() }() // what there was to read has been read
	columns, err := rows.Columns()
	if err != nil {
		return nil, c.Failure(err)
	}
	row, into := make([]string, len(columns)), make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	if rows.Next() {
		err = rows.Scan(into...)
	}
	if err = errors.Join(err, rows.Err()); err != nil {
		return nil, c.Failure(err)
	}
	return append(values, row...), nil
}

// Read reads what there is of a key, to see whether tables and routines are there, and for this release.
func (c *Conn) Read(ctx context.Context) error {
	it := c.Tables.Item("key")
	it.Size = 1
	_, err := c.Call(ctx, "INSPECT", []Item{it})
	return err
}

// Questions of both kinds of database.

// judgeDurability judges a list of settings that lose commits.
func judgeDurability(fix string) func([]string) store.Finding {
	return func(answer []string) store.Finding {
		if answer[0] == "" {
			return store.Finding{Fact: "a lock is on the server's disk before it is granted"}
		}
		return store.Finding{Verdict: store.VerdictWarn, Fact: answer[0] + ": a crash may forget locks that were just granted", Fix: fix}
	}
}

// judgeConnections judges how many connections there are, and how many there may be.
func judgeConnections(used, most string) store.Finding {
	found := store.Finding{Fact: used + " of the server's " + most + " connections are in use"}
	n, _ := strconv.Atoi(used) // it is a number by the question
	if m, _ := strconv.Atoi(most); n*10 > m*9 {
		found.Verdict = store.VerdictWarn
		found.Fix = "limit the pools of programs (SetMaxOpenConns), or raise max_connections; locks fail if the server refuses a connection"
	}
	return found
}
