// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/asynclock/asynclock-go/store"
)

// A SchemaError says that a table is not as required: locks in it would exclude nobody, or
// not for long. Nothing was changed.
type SchemaError struct {
	Table string
	Why   string
}

func (e *SchemaError) Error() string { return "table " + e.Table + ": " + e.Why }

// Opened returns the error of a store that can't be opened.
func Opened(pkg string, err error) error {
	var schema *SchemaError
	if errors.As(err, &schema) {
		return err
	}
	return fmt.Errorf("%s: open: %w", pkg, err)
}

// prefixPattern allows no quotes, so that the database folds the case as it does for Java's
// unquoted names.
var prefixPattern = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,30}\.)?[A-Za-z_][A-Za-z0-9_]{0,30}$`)

// CheckPrefix refuses a prefix that names of tables can't have.
func CheckPrefix(prefix string) error {
	if !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("%w: prefix %q", store.ErrInvalidOption, prefix)
	}
	return nil
}

// Script returns the script of a kind of database, from a store's directory schema.
func Script(files embed.FS, d Database) (string, error) {
	if d.dialect == nil {
		return "", errNoDatabase
	}
	text, err := files.ReadFile("schema/" + d.dialect.name + ".sql")
	return string(text), err
}

// Renamed gives a script's tables and routines another prefix. The name of an index has no
// schema: an index is always in the schema of its table.
func Renamed(script, from, to string) string {
	bare := to[strings.LastIndexByte(to, '.')+1:]
	script = strings.ReplaceAll(script, "INDEX IF NOT EXISTS "+from, "INDEX IF NOT EXISTS \x00")
	script = regexp.MustCompile(`\b`+from).ReplaceAllString(script, to)
	return strings.ReplaceAll(script, "\x00", bare)
}
