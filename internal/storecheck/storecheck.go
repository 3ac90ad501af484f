// SPDX-License-Identifier: Apache-2.0

// Package storecheck makes the checks of a store.CheckedStore, one after the other.
package storecheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Patience is how long a server has for one check.
const Patience = 2 * time.Second

// A Probe finds out one thing about a server or a store.
type Probe struct {
	Check string
	// Find returns what is the case, soon after ctx has ended at the latest. With an error, only the Fix of its finding
	// counts: it says what to do about [store.ErrDenied].
	Find func(ctx context.Context) (store.Finding, error)
}

// Run reports what the probes find. The first that meets a server or a store that does not answer fails, and is the last.
func Run(ctx context.Context, report func(store.Finding), probes ...Probe) {
	for _, p := range probes {
		limited, cancel := context.WithTimeout(ctx, Patience)
		found, err := p.Find(limited)
		silent := limited.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return
		}
		last := false
		if err != nil {
			found = failed(err, silent, found.Fix)
			last = found.Verdict == store.VerdictFail
		}
		found.Check = p.Check
		report(found)
		if last {
			return
		}
	}
}

// failed is the finding of a probe that failed. The fix is of what is denied.
func failed(err error, silent bool, fix string) store.Finding {
	const see = "see that the server runs and answers, at the address that the store has"
	switch {
	case silent:
		return store.Finding{Verdict: store.VerdictFail, Fact: fmt.Sprintf("there was no answer within %v", Patience), Fix: see}
	case errors.Is(err, store.ErrClosed):
		return store.Finding{Verdict: store.VerdictFail, Fact: err.Error(), Fix: "open the store again"}
	case errors.Is(err, store.ErrUnreachable), errors.Is(err, store.ErrOutcomeUnknown):
		return store.Finding{Verdict: store.VerdictFail, Fact: err.Error(), Fix: see}
	case !errors.Is(err, store.ErrDenied):
		fix = ""
	}
	return store.Finding{Verdict: store.VerdictNote, Fact: "not known: " + err.Error(), Fix: fix}
}
