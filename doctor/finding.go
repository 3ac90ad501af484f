// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/asynclock/asynclock-go/store"

// A Finding is the result of one check.
type Finding = store.Finding

// A Verdict says how good it is what a check has found.
type Verdict = store.Verdict

// The verdicts, from the best to the worst.
const (
	OK   = store.VerdictOK
	Note = store.VerdictNote
	Warn = store.VerdictWarn
	Fail = store.VerdictFail
)

// Worst returns the worst verdict of the findings, and [OK] of none.
func Worst(findings []Finding) Verdict {
	worst := OK
	for _, f := range findings {
		worst = max(worst, f.Verdict)
	}
	return worst
}
