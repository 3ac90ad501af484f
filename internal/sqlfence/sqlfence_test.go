// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

var errStatement = errors.New("no such table")

// Migrate asks before it makes a table, and once more if it can't.
func TestMigrate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails []bool // of the statements in turn
		want  bool   // an error
	}{
		"there":         {[]bool{false}, false},
		"made":          {[]bool{true, false, false}, false},
		"made by other": {[]bool{true, true, false}, false},
		"no right":      {[]bool{true, true, true}, true},
		"another table": {[]bool{true, false, true}, true},
	} {
		var sent []string
		err := SQLite.Migrate(t.Context(), Place{"p", "t", ""}, func(_ context.Context, statement string) error {
			word, _, _ := strings.Cut(statement, " ")
			sent = append(sent, word)
			if len(sent) <= len(c.fails) && !c.fails[len(sent)-1] {
				return nil
			}
			return errStatement
		})
		if want := []string{"SELECT", "CREATE", "SELECT"}[:len(c.fails)]; !slices.Equal(sent, want) {
			t.Errorf("%s: sent %v, want %v", name, sent, want)
		}
		if (err != nil) != c.want || c.want && !errors.Is(err, errStatement) {
			t.Errorf("%s: got %v, want an error: %t", name, err, c.want)
		}
	}
	var none context.Context
	if err := Postgres.Migrate(none, Place{"p", "t", ""}, nil); !errors.Is(err, errNoContext) {
		t.Errorf("no context: got %v, want %v", err, errNoContext)
	}
}

// FuzzRow: no two fences have one row, and what a database can't hold is in no name.
func FuzzRow(f *testing.F) {
	f.Add("", "order:42", "order", ":42")
	f.Add("a", "%b", "a%", "b")
	f.Add("", "k", "r", "k")
	f.Add("", "a%%b", "a", "b")
	f.Add("", "%", "", "%25")
	f.Fuzz(func(t *testing.T, resource, key, otherResource, otherKey string) {
		row, other := Place{Resource: resource}.row(key), Place{Resource: otherResource}.row(otherKey)
		if same := resource == otherResource && key == otherKey; key != "" && otherKey != "" && (row == other) != same {
			t.Errorf("rows of (%q, %q) and (%q, %q): got %q and %q", resource, key, otherResource, otherKey, row, other)
		}
		if strings.ContainsAny(row, "\x00\n\"\\\x7f") {
			t.Errorf("row of (%q, %q): got %q, with characters that it should not have", resource, key, row)
		}
	})
}
