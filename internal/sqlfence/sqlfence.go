// SPDX-License-Identifier: Apache-2.0

// Package sqlfence has the common parts of all fences in databases: the statements, the names of
// rows, and the check. The fences are fencesql, fencepgx, and Guard of the stores in databases.
package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"

	"github.com/asynclock/asynclock-go/fence"
)

// DefaultTable is the table of fences, unless a user chooses another. sqlstore has the same by
// default.
const DefaultTable = "asynclock_fence"

// A Place is where the fences of one resource are: rows of a table.
type Place struct {
	Package  string // of the user, for errors
	Table    string
	Resource string // empty: the database as a whole
}

// tablePattern is that of names that may stand in a statement as they are.
var tablePattern = regexp.MustCompile(`^([A-Za-z_]\w{0,62}\.)?[A-Za-z_]\w{0,62}$`)

// Check returns ErrInvalidOption if there can't be such a place.
func (p Place) Check() error {
	if !tablePattern.MatchString(p.Table) {
		return fmt.Errorf("%w: table %.100q", fence.ErrInvalidOption, p.Table)
	}
	return fence.CheckResource(p.Resource)
}

// row returns the name of a key's row. Two per cent signs are in no name, so no two pairs of a
// resource and a key have one row.
func (p Place) row(key string) string {
	if p.Resource == "" {
		return Name(key)
	}
	return Name(p.Resource) + "%%" + Name(key)
}

// Guard shows the token of h to its fence by raise, which runs a dialect's statement and returns the
// fence's new value.
func (p Place) Guard(h fence.Holder, raise func(row string, token int64) (newest int64, err error)) error {
	if err := fence.Check(h); err != nil {
		return err
	}
	return p.GuardRow(p.row(h.Key()), h, raise)
}

// GuardAll is Guard for each of several keys, in the order of [fence.NewStamps].
func (p Place) GuardAll(h fence.Holders, raise func(row string, token int64) (newest int64, err error)) error {
	stamps, err := fence.NewStamps(h)
	for _, s := range stamps {
		if err := p.Guard(s, raise); err != nil {
			return err
		}
	}
	return err
}

// GuardRow is Guard where the name of the row is another's choice.
func (p Place) GuardRow(row string, h fence.Holder, raise func(row string, token int64) (newest int64, err error)) error {
	newest, err := raise(row, h.Token())
	if err != nil { // unchanged: the transaction is the caller's, and so are its errors
		return fmt.Errorf("%s: guard %q: %w", p.Package, h.Key(), err)
	}
	return fence.Admit(h, p.Resource, newest)
}

var (
	errNoContext     = fmt.Errorf("%w: ctx is nil", fence.ErrInvalidOption)
	errNoTransaction = fmt.Errorf("%w: tx is nil, and a token is checked in a transaction", fence.ErrInvalidOption)
)

// Raise returns how a transaction of database/sql raises a fence in a table.
func (d *Dialect) Raise(ctx context.Context, tx *sql.Tx, table string) func(row string, token int64) (int64, error) {
	return func(row string, token int64) (newest int64, err error) {
		switch {
		case ctx == nil:
			return 0, errNoContext
		case tx == nil:
			return 0, errNoTransaction
		}
		if d.read == "" {
			err = tx.QueryRowContext(ctx, d.Statement(table), row, token).Scan(&newest)
			return newest, err
		}
		if _, err := tx.ExecContext(ctx, d.Statement(table), row, token); err != nil {
			return 0, err
		}
		err = tx.QueryRowContext(ctx, fmt.Sprintf(d.read, table), row).Scan(&newest)
		return newest, err
	}
}

// An Exec runs a statement without arguments and without rows.
type Exec func(ctx context.Context, statement string) error

// Migrate makes a table unless it is there. It changes nothing in a table that is there, and then
// takes no right to make one.
func (d *Dialect) Migrate(ctx context.Context, p Place, exec Exec) error {
	if ctx == nil {
		return errNoContext
	}
	if d.migrate != "" {
		if err := exec(ctx, fmt.Sprintf(d.migrate, p.Table, d.Schema(p.Table))); err != nil {
			return fmt.Errorf("%s: migrate: %w", p.Package, err)
		}
		return nil
	}
	probe := fmt.Sprintf(d.probe, p.Table)
	if exec(ctx, probe) == nil {
		return nil
	}
	made := exec(ctx, d.Schema(p.Table))
	if err := exec(ctx, probe); err != nil { // of those who make it at once, some fail, and find it then
		return fmt.Errorf("%s: migrate: %w", p.Package, errors.Join(made, err))
	}
	return nil
}
