// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Unopened is the finding about a store that could not be opened. The error is that of the function that opens it.
func Unopened(err error) Finding {
	return Finding{Check: "server", Verdict: Fail, Fact: sentence("the store can't be opened: " + text(err)), Fix: sentence(remedy(err))}
}

// text returns what an error of a store says. It has no passwords and no owners.
func text(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time"
	}
	lines := strings.FieldsFunc(strings.Replace(err.Error(), "asynclock: ", "", 1), func(r rune) bool { return r == '\n' || r == '\t' })
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

func isEndOfContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// isSilence reports whether the server did not answer, so that it will not answer further requests either.
func isSilence(err error) bool {
	if errors.Is(err, store.ErrGrace) || errors.Is(err, store.ErrDenied) {
		return false
	}
	return errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) || isEndOfContext(err)
}

// remedies are in the order of precedence: an error can be several of these at once.
var remedies = []struct {
	err error
	fix string
}{
	{store.ErrDenied, "give this user that right, or check its name and password; docs/security.md lists the rights that locks need"},
	{store.ErrForeignData, "find out which program has written there, and use another prefix, database or schema than it does"},
	{store.ErrInvalidOption, "if clients use another TTL, say so: --ttl, or doctor.WithTTL; otherwise change what the text before this names"},
	{store.ErrGrace, "wait until then: nobody knows before that whether another has the key; 'asynclock grace' shows why, and whether it can be ended"},
	{store.ErrUnsupported, "use a store that can do that; docs/choose.md compares them"},
	{store.ErrLost, foreignerFix},
	{errRefused, foreignerFix},
	{store.ErrClosed, "open the store again"},
	{store.ErrUnreachable, "check that the address is right, that the server runs, and that no firewall is between it and this machine"},
	{store.ErrOutcomeUnknown, silenceFix},
	{context.DeadlineExceeded, silenceFix},
}

const silenceFix = "the server may hang or be overloaded, or a firewall drops packets: look at its load, its log, and the network"

// foreignerFix is about keys with random names, which nobody else knows.
const foreignerFix = "look for another program that changes this store, and for an eviction or a restart of the server"

// remedy returns what to do about an error.
func remedy(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return r.fix
		}
	}
	return "look at the log of the server"
}

// graceFact says for how long the server grants nothing yet.
func graceFact(err error) string {
	fact := "the server was started or promoted lately, and grants nothing yet"
	if grace := (*store.GraceError)(nil); errors.As(err, &grace) {
		fact = "the server was started or promoted lately, and grants nothing for " + short(grace.Remaining) + " yet"
	}
	return fact + ", because it may have forgotten who holds which key"
}

// short formats a duration in two or three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 100*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// count returns a number and its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
