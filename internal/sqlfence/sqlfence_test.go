// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/fence"
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

// Keys that a caller lists in any order are guarded in one, and none behind a refusal.
func TestGuardAllGoesInTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	var guarded []string
	raise := func(row string, token int64) (newest int64, err error) {
		guarded = append(guarded, row)
		return max(token, 5), nil
	}
	all := func(tokens ...int64) fence.Stamps {
		var stamps fence.Stamps
		for i, token := range tokens {
			s, err := fence.NewStamp(string(rune('c'-i)), token)
			if err != nil {
				t.Fatal(err)
			}
			stamps = append(stamps, s)
		}
		return stamps
	}
	if err := (Place{}).GuardAll(all(5, 6, 7), raise); err != nil || !slices.Equal(guarded, []string{"a", "b", "c"}) {
		t.Errorf("got %v, %v, want a, b and c", guarded, err)
	}
	guarded = nil
	var stale *fence.StaleError
	if err := (Place{}).GuardAll(all(5, 4, 5), raise); !errors.As(err, &stale) || stale.Key != "b" || len(guarded) != 2 {
		t.Errorf("got %v after %v, want a StaleError of b, and nothing behind it", err, guarded)
	}
	if err := (Place{}).GuardAll(nil, raise); !errors.Is(err, fence.ErrInvalidToken) {
		t.Errorf("no keys: got %v, want ErrInvalidToken", err)
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
