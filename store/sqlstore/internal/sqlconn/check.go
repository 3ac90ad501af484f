// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/asynclock/asynclock-go/store"
)

// A Probe finds out one thing about a server or a store.
type Probe struct {
	Check string
	// Find returns what is the case. With an error, only the Fix of its finding counts: it says what to do about that.
	Find func(ctx context.Context) (store.Finding, error)
}

// probeTime bounds a probe.
const probeTime = 3 * time.Second

// Check reports what the server is like, and then what the probes of a store find. It ends with the first probe that
// gets no answer.
func (c *Conn) Check(ctx context.Context, report func(store.Finding), own ...Probe) {
	var probes []Probe
	for _, q := range c.dialect.questions {
		probes = append(probes, c.probe(q))
	}
	for _, p := range slices.Concat(probes, []Probe{c.clock()}, own) {
		found, err := find(ctx, p)
		if ctx.Err() != nil {
			return
		}
		silent := isSilence(err)
		switch {
		case silent:
			found = gone(err)
		case err != nil:
			found = unknown(err, found.Fix)
		}
		found.Check = p.Check
		report(found)
		if silent {
			return
		}
	}
}

// gone is the finding of a database that does not answer, or refuses all.
func gone(err error) store.Finding {
	found := store.Finding{
		Verdict: store.VerdictFail, Fact: "the database does not answer: " + err.Error(),
		Fix: "see that it runs, that the address is right, and that nothing between it and this machine drops packets",
	}
	if errors.As(err, new(*pgconn.PgError)) || errors.As(err, new(*mysql.MySQLError)) {
		found.Fact = "the database refuses requests: " + err.Error()
		found.Fix = "do what it says; run Migrate if a table or a routine is missing"
	}
	return found
}

func find(ctx context.Context, p Probe) (store.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found, err := p.Find(ctx)
	if err != nil && ctx.Err() != nil { // whatever the driver makes of it
		err = ctx.Err()
	}
	return found, err
}

// isSilence reports whether the server, or the pool, answers no further probe either.
func isSilence(err error) bool {
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded)
}

// unknown is the finding of a probe that failed. Tables that are not as required are known to be so.
func unknown(err error, fix string) store.Finding {
	var schema *SchemaError
	if errors.As(err, &schema) {
		return store.Finding{Verdict: store.VerdictFail, Fact: schema.Error(), Fix: fix}
	}
	return store.Finding{Verdict: store.VerdictNote, Fact: "not known: " + err.Error(), Fix: fix}
}

// A question is what to ask a server, and how to judge its answer.
type question struct {
	check string
	asks  []string // statements; all values of their first rows are the answer
	judge func(answer []string) store.Finding
}

// probe asks one question.
func (c *Conn) probe(q question) Probe {
	return Probe{q.check, func(ctx context.Context) (_ store.Finding, err error) {
		var answer []string
		for _, statement := range q.asks {
			if answer, err = c.row(ctx, answer, statement); err != nil {
				return store.Finding{Fix: remedy(err, statement)}, err
			}
		}
		return q.judge(answer), nil
	}}
}

// remedy says what to do about a statement that has failed, if that is known.
func remedy(err error, statement string) string {
	if errors.Is(err, store.ErrDenied) {
		return "grant the store's user what it takes to run: " + statement
	}
	return ""
}

// Remedy says what to do about an error of a routine, if that is known: migrate is about a [SchemaError].
func Remedy(err error, migrate string) string {
	var schema *SchemaError
	switch {
	case errors.As(err, &schema):
		return migrate
	case errors.Is(err, store.ErrDenied):
		return "grant the store's user the rights that docs/stores/sql.md lists"
	}
	return ""
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
