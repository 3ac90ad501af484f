// SPDX-License-Identifier: Apache-2.0

package board

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
)

// A seen key is as a test says.
type seen struct {
	Locker

	info asynclock.Info
	err  error
}

func (s seen) Inspect(context.Context, string) (asynclock.Info, error) { return s.info, s.err }

// TestEndOf: of a run without a recorded end it is said what follows from who has the key.
func TestEndOf(t *testing.T) {
	t.Parallel()
	began := time.Unix(100, 0)
	runs := once.RunInfo{Began: began, Token: 7}
	ended := runs
	ended.Ended = began.Add(2 * time.Second)
	for name, c := range map[string]struct {
		first, last once.RunInfo
		seen        seen
		want        string
	}{
		"ended":         {ended, once.RunInfo{}, seen{err: errors.New("nobody asks")}, "1970-01-01 00:01:42 UTC, after 2.0s"},
		"its lease":     {runs, runs, seen{info: asynclock.Info{Held: true, Token: 7}}, "its lease lasts"},
		"a new lease":   {runs, runs, seen{info: asynclock.Info{Held: true, Token: 8}}, "another one holds the key"},
		"nobody":        {runs, runs, seen{info: asynclock.Info{Token: 7}}, "nobody holds the key"},
		"ended by then": {runs, ended, seen{}, "1970-01-01 00:01:42 UTC, after 2.0s"},
		"another run":   {runs, once.RunInfo{Began: began, Token: 8}, seen{}, "it runs, was interrupted, or died"},
		"unknown":       {runs, runs, seen{err: errors.New("no answer")}, "it runs, was interrupted, or died"},
	} {
		last := func() (once.RunInfo, error) { return c.last, nil }
		if got := EndOf(t.Context(), c.seen, "job", c.first, last); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q in it", name, got, c.want)
		}
	}
}
