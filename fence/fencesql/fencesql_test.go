// SPDX-License-Identifier: Apache-2.0

package fencesql

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/fence"
)

// The tests that need a database are in internal/test/fences.

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{
		"defaults":          nil,
		"schema":            {WithTable("app.fences_2")},
		"longest table":     {WithTable(strings.Repeat("t", 63))},
		"resource":          {WithResource("orders of 世界 \"%'")},
		"resource, no name": {WithResource("")},
	} {
		if f, err := New(Postgres, opts...); err != nil || f == nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
	}
	for name, opts := range map[string][]Option{
		"no table":      {WithTable("")},
		"statement":     {WithTable("t; DROP TABLE orders")},
		"quotes":        {WithTable(`"t"`)},
		"two schemas":   {WithTable("a.b.c")},
		"long table":    {WithTable(strings.Repeat("t", 64))},
		"newline":       {WithTable("t\n")},
		"long resource": {WithResource(strings.Repeat("r", 65))},
		"nil":           {nil},
	} {
		if _, err := New(Postgres, opts...); !errors.Is(err, fence.ErrInvalidOption) {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
	for _, d := range []Dialect{0, SQLite + 1, -1} {
		if _, err := New(d); !errors.Is(err, fence.ErrInvalidOption) {
			t.Errorf("dialect %d: got %v, want ErrInvalidOption", d, err)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	made, err := New(Postgres)
	if err != nil {
		t.Fatal(err)
	}
	stamp, err := fence.NewStamp("k", 1)
	if err != nil {
		t.Fatal(err)
	}
	var none context.Context
	for name, got := range map[string]error{
		"nil Fence":          (*Fence)(nil).Guard(t.Context(), nil, stamp),
		"zero Fence":         new(Fence).Guard(t.Context(), nil, stamp),
		"no transaction":     made.Guard(t.Context(), nil, stamp),
		"no context":         made.Guard(none, nil, stamp),
		"no holder":          made.Guard(t.Context(), nil, nil),
		"no token":           made.Guard(t.Context(), nil, fence.Stamp{}),
		"all, zero Fence":    new(Fence).GuardAll(t.Context(), nil, fence.Stamps{stamp}),
		"all, no holder":     made.GuardAll(t.Context(), nil, nil),
		"migrate, zero":      new(Fence).Migrate(t.Context(), nil),
		"migrate, nil":       (*Fence)(nil).Migrate(t.Context(), nil),
		"migrate, no pool":   made.Migrate(t.Context(), nil),
		"schema of the zero": func() error { _, err := new(Fence).Schema(); return err }(),
	} {
		if !errors.Is(got, fence.ErrInvalidOption) && !errors.Is(got, fence.ErrInvalidKey) {
			t.Errorf("%s: got %v, want ErrInvalidOption or ErrInvalidKey", name, got)
		}
	}
}

func TestSchemaNamesTheTable(t *testing.T) {
	t.Parallel()
	for _, d := range []Dialect{Postgres, MySQL, SQLite} {
		f, err := New(d, WithTable("app.tokens"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Schema(); err != nil || !strings.HasPrefix(got, "CREATE TABLE IF NOT EXISTS app.tokens (") {
			t.Errorf("dialect %d: got %q, %v, want the table app.tokens", d, got, err)
		}
	}
}
