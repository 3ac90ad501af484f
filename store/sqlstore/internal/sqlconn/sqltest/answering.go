// SPDX-License-Identifier: Apache-2.0

package sqltest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// Answers are a test's, instead of a routine's.
type Answers func(routine string, items []sqlconn.Item) ([]sqlconn.Answer, error)

// Answering returns a PostgreSQL in which each routine answers as a test says. It has
// nothing else.
func Answering(t testing.TB, answers Answers) sqlconn.Database {
	t.Helper()
	db := sql.OpenDB(answeringDriver{answers})
	t.Cleanup(func() { _ = db.Close() })
	return sqlconn.Postgres(db)
}

type answeringDriver struct{ answers Answers }

func (d answeringDriver) Connect(context.Context) (driver.Conn, error) { return answeringConn(d), nil }
func (d answeringDriver) Driver() driver.Driver                        { return nil }

type answeringConn struct{ answers Answers }

func (c answeringConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("none") }
func (c answeringConn) Begin() (driver.Tx, error)           { return nil, errors.New("none") }
func (c answeringConn) Close() error                        { return nil }

// ExecContext sweeps.
func (c answeringConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, nil
}

func (c answeringConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 { // it does not refuse to write
		return &answerRows{}, nil
	}
	routine, _, _ := strings.Cut(strings.TrimPrefix(query, "SELECT "), "(")
	var request struct{ Items []sqlconn.Item }
	if err := json.Unmarshal([]byte(args[0].Value.(string)), &request); err != nil {
		return nil, err
	}
	items, err := c.answers(routine, request.Items)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(sqlconn.Reply{Clock: time.Now().UnixMicro(), Items: items})
	return &answerRows{text: string(out)}, err
}

// answerRows are one row with one column.
type answerRows struct {
	text string
	read bool
}

func (r *answerRows) Columns() []string { return []string{"answer"} }
func (r *answerRows) Close() error      { return nil }

func (r *answerRows) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	dest[0], r.read = r.text, true
	return nil
}
