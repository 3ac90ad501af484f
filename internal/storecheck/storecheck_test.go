// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/asynclock/asynclock-go/store"
)

// TestErrors: what a probe's error says, and whether it is the last probe's.
func TestErrors(t *testing.T) {
	t.Parallel()
	const fix = "grant it"
	for name, c := range map[string]struct {
		err       error // nil: the probe waits for the end of its time
		verdict   store.Verdict
		fact, fix string
	}{
		"denied":      {store.ErrDenied, store.VerdictNote, "not known: " + store.ErrDenied.Error(), fix},
		"else":        {errors.New("odd"), store.VerdictNote, "not known: odd", ""},
		"unreachable": {store.ErrUnreachable, store.VerdictFail, store.ErrUnreachable.Error(), "see that the server runs"},
		"cut":         {store.ErrOutcomeUnknown, store.VerdictFail, store.ErrOutcomeUnknown.Error(), "see that the server runs"},
		"closed":      {store.ErrClosed, store.VerdictFail, store.ErrClosed.Error(), "open the store again"},
		"silent":      {nil, store.VerdictFail, "there was no answer within 2s", "see that the server runs"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var found []store.Finding
			report := func(f store.Finding) { found = append(found, f) }
			Run(t.Context(), report, Probe{"first", func(ctx context.Context) (store.Finding, error) {
				if c.err == nil {
					<-ctx.Done()
					return store.Finding{}, ctx.Err()
				}
				return store.Finding{Fact: "a guess", Fix: fix}, c.err
			}}, Probe{"second", func(context.Context) (store.Finding, error) { return store.Finding{}, nil }})
			got, want := found[0], store.Finding{Check: "first", Verdict: c.verdict, Fact: c.fact, Fix: c.fix}
			if strings.HasPrefix(got.Fix, want.Fix) && want.Fix != "" {
				got.Fix = want.Fix
			}
			if got != want {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
			if last := c.verdict == store.VerdictFail; (len(found) == 1) != last {
				t.Errorf("%s: got the findings %s, want the first alone: %t", name, fmt.Sprint(found), last)
			}
		})
	}
}
