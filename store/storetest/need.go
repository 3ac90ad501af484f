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

// facts are a store's Features and the options of Run.
type facts struct {
	store.Features

	messages bool // it can notify waiters and holders
}

// A need reports whether a store has the feature that a case is about.
type need func(facts) bool

func anyStore(facts) bool  { return true }
func queues(f facts) bool  { return f.FIFO }
func tokens(f facts) bool  { return f.Tokens }
func wanting(f facts) bool { return f.FIFO && f.Retention }

// queuesAndTokens: the case recognizes the queue by its tokens.
func queuesAndTokens(f facts) bool { return f.FIFO && f.Tokens }

// tokensOfUse: a store with sessions need not be told which of the tokens it has set aside were
// used.
func tokensOfUse(f facts) bool { return f.Tokens && !f.Sessions }

// endsByTTL: what a release finds is all that the store knows of how a holding has ended.
func endsByTTL(f facts) bool { return !f.Sessions }

// messages go to waiters, and to holders whose key has a queue.
func messages(f facts) bool { return f.FIFO && f.messages }

// messagesOfTTLs go to waiters who know the holder's TTL. Where the server has sessions and no TTLs,
// waiters are notified when the holding ends.
func messagesOfTTLs(f facts) bool { return messages(f) && !f.Sessions }

// messagesOfWanted go to holders whose key others request.
func messagesOfWanted(f facts) bool { return f.FIFO && f.Retention && f.messages }

// shares and permits need a queue, whose order decides, and tokens.
func shares(f facts) bool  { return f.Shared && f.FIFO && f.Tokens }
func permits(f facts) bool { return f.Permits && f.FIFO && f.Tokens }

func sharesAndMessages(f facts) bool  { return shares(f) && f.messages }
func permitsAndMessages(f facts) bool { return permits(f) && f.messages }
func permitsAndShares(f facts) bool   { return permits(f) && shares(f) }

// notes have the tokens of their writers.
func notes(f facts) bool           { return f.Notes && f.Tokens }
func notesAndShares(f facts) bool  { return notes(f) && shares(f) }
func notesAndPermits(f facts) bool { return notes(f) && permits(f) }

// announcements are messages about notes.
func announcements(f facts) bool   { return notes(f) && f.Announcements && f.messages }
func noAnnouncements(f facts) bool { return notes(f) && !f.Announcements }

func noNotes(f facts) bool   { return !f.Notes }
func noShares(f facts) bool  { return !f.Shared }
func noPermits(f facts) bool { return !f.Permits }

// limits are about permits.
func limits(f facts) bool            { return f.Limits && permits(f) }
func limitsAndMessages(f facts) bool { return limits(f) && f.messages }
func limitsAndShares(f facts) bool   { return limits(f) && shares(f) }
func noLimits(f facts) bool          { return !f.Limits }

func cases() []testCase {
	return slices.Concat(
		holdingCases, renewalCases, queueCases, handoffCases, withdrawalCases, livenessCases,
		tokenCases, forceCases, eventCases, wantedCases, inspectionCases, keyCases, callCases,
		sharedCases, permitCases, limitCases, noteCases, observeCases,
	)
}

// casesFor returns the cases that a store has to pass.
func casesFor(f facts) []testCase {
	return slices.DeleteFunc(cases(), func(c testCase) bool { return !c.needs(f) })
}
