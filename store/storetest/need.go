// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"

	"github.com/asynclock/asynclock-go/store"
)

// A testCase is one rule. Its name is the rule in words.
type testCase struct {
	name  string
	needs need
	run   func(*world)
}

// facts are what a store has by its Features, and what Run was told of it.
type facts struct {
	store.Features

	messages bool // it can tell waiters and holders something
}

// A need says whether a store has what a case is about.
type need func(facts) bool

func anyStore(facts) bool  { return true }
func queues(f facts) bool  { return f.FIFO }
func tokens(f facts) bool  { return f.Tokens }
func wanting(f facts) bool { return f.FIFO && f.Retention }

// queuesAndTokens: the queue is known by its tokens.
func queuesAndTokens(f facts) bool { return f.FIFO && f.Tokens }

// tokensOfUse: a store with sessions need not be told that of the tokens which it has set
// aside some were used.
func tokensOfUse(f facts) bool { return f.Tokens && !f.Sessions }

// messages are told to those who queue, and hold what others queue for.
func messages(f facts) bool { return f.FIFO && f.messages }

// messagesOfWanted are told to holders that others want the key of.
func messagesOfWanted(f facts) bool { return f.FIFO && f.Retention && f.messages }

func cases() []testCase {
	return slices.Concat(
		holdingCases, renewalCases, queueCases, handoffCases, withdrawalCases, livenessCases,
		tokenCases, eventCases, wantedCases, inspectionCases, keyCases, callCases,
	)
}

// casesFor are those that a store has to pass.
func casesFor(f facts) []testCase {
	return slices.DeleteFunc(cases(), func(c testCase) bool { return !c.needs(f) })
}
