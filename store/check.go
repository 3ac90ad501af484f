// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
)

// A CheckedStore can say whether its server is fit for locks.
type CheckedStore interface {
	Store

	// Check examines the servers and reports what it finds, one after the other, in an order that is always the
	// same. It reads only, and disturbs no lock. It reports with [VerdictNote] what it can't find out, and says in
	// Fix which right it lacks. It returns when it has reported all, or soon after ctx has ended.
	Check(ctx context.Context, report func(Finding))
}

// A Finding is the result of one check.
type Finding struct {
	// Check is what was checked, in a few words that stay the same, such as "eviction".
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	// Fact says what is the case, in a sentence, whose capital letter and full stop may be missing. It may name servers,
	// and never has a password or an owner.
	Fact string `json:"fact"`
	// Fix says what to do about it, likewise. It is empty if there is nothing to do.
	Fix string `json:"fix"`
}

// A Verdict says how good it is what a check has found.
type Verdict int

// The verdicts, from the best to the worst.
const (
	VerdictOK   Verdict = iota // as it should be
	VerdictNote                // worth knowing
	VerdictWarn                // locks work, and may be lost, be slow, or not survive a fault
	VerdictFail                // locks don't work, or exclude nobody
)

// String returns "ok", "note", "warn" or "fail".
func (v Verdict) String() string {
	switch v {
	case VerdictOK:
		return "ok"
	case VerdictNote:
		return "note"
	case VerdictWarn:
		return "warn"
	case VerdictFail:
		return "fail"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// MarshalText returns what String does, for JSON.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
