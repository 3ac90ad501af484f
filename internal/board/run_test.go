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
	for name, c := range map[string]struct {
		ended time.Time
		seen  seen
		want  string
	}{
		"ended":       {began.Add(2 * time.Second), seen{err: errors.New("nobody asks")}, "1970-01-01 00:01:42 UTC, after 2.0s"},
		"its lease":   {time.Time{}, seen{info: asynclock.Info{Held: true, Token: 7}}, "its lease lasts"},
		"a new lease": {time.Time{}, seen{info: asynclock.Info{Held: true, Token: 8}}, "another one holds the key"},
		"nobody":      {time.Time{}, seen{info: asynclock.Info{Token: 7}}, "nobody holds the key"},
		"unknown":     {time.Time{}, seen{err: errors.New("no answer")}, "it runs, was interrupted, or died"},
	} {
		if got := EndOf(t.Context(), c.seen, "job", &once.RunInfo{Began: began, Ended: c.ended, Token: 7}); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q in it", name, got, c.want)
		}
	}
}
