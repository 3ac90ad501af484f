// SPDX-License-Identifier: Apache-2.0

// Package acceptance has the stories that a user of locks could tell. Each store has to
// pass those that its kind offers: the tables of stores are in asynclock_test.go at the
// root, and beside the stores that have a module of their own.
//
// The files stories_*.go have the stories. env.go is what a story has at hand, worker.go
// another process with a client, timing.go what excuses a late event. The tests of this
// package need Redis servers of their own: what a server can do to clients
// (faults_test.go), what other libraries got wrong (rivals_test.go), the rights of a user
// (users_test.go), commands on the wire (wirecount_test.go).
package acceptance

import "testing"

// A Story is what users of a lock go through, and what they may count on. It runs in an
// [Env] of its own, in parallel with all others.
type Story struct {
	Name string
	Run  func(*Env)
	// Needs says what kind of store it takes.
	Needs Need
}

// A Need is what a story takes and a store offers.
type Need int

// The kinds of store. Each includes those before it.
const (
	AnyStore Need = iota
	// Queues: clients are served in their order, and their number is known.
	Queues
	// Processes: other processes reach the store, so that they can be killed.
	Processes
	// Redis: the story looks at Redis, or does something to it.
	Redis
)

// Notified is offered besides one of these: a holder is notified at once of what happens
// to its lease.
const Notified Need = 1 << 8

// metBy reports whether a store that offers so much is enough.
func (n Need) metBy(offers Need) bool {
	return n&^Notified <= offers&^Notified && n&Notified <= offers&Notified
}

// Stories are all of them.
var Stories = []Story{
	// Exclusion and order.
	{"a counter that nobody protects loses nothing", counterLosesNothing, AnyStore},
	{"a file that processes bump loses nothing", fileLosesNothing, Processes},
	{"tokens rise across all clients", tokensRise, AnyStore},
	{"clients are served in the order they queued", clientsAreServedInOrder, Queues},
	{"a thousand waiters on five clients are drained", thousandWaitersAreDrained, Queues},

	// Waiting.
	{"a waiter that is woken runs at once", wokenWaiterRunsAtOnce, Queues},
	{"TryLock says who holds the key", tryLockSaysWhoHolds, Queues},
	{"a wait that its context ended leaves no trace", endedWaitLeavesNoTrace, Queues},
	{"a future is selected on, and an abandoned one holds nothing", futuresAreSelectedOn, Queues},
	{"what nobody receives goes on to the next", whatNobodyReceivesGoesOn, AnyStore},
	{"loops around a select get the key", loopsAroundASelectGetTheKey, Queues},
	{"clients that close tell their waiters and leave nothing behind", closeLeavesNothing, Queues},

	// Several keys.
	{"several keys in opposite order never deadlock", severalKeysNeverDeadlock, AnyStore},

	// Readers.
	{"readers are together, and a writer is alone", readersAndWriters, AnyStore},
	{"a writer goes on as a reader", writerReadsOn, AnyStore},

	// Permits.
	{"no more permits are out than there are", permitsAreCounted, AnyStore},
	{"a large request for permits is not passed by smaller ones", largeRequestIsServed, Queues},
	{"a killed holder's permits come back", killedHoldersPermitsComeBack, Processes},

	// Runs and elections.
	{"a job runs once in its interval", jobRunsOnceInItsInterval, AnyStore},
	{"an observer sees one leader after the other", leadersAreSeen, AnyStore},
	{"observers are told who leads and who has resigned", leadersAreTold, AnyStore},

	// Holding.
	{"another goroutine unlocks", anotherGoroutineUnlocks, AnyStore},
	{"re-entry is by context, and asked for", reentryIsByContext, AnyStore},
	{"WithLock reports a loss that its function did not notice", withLockReportsLoss, AnyStore | Notified},
	{"the minimum hold outlasts Unlock", minHoldOutlastsUnlock, AnyStore},
	{"who queued before a minimum hold has the key at its end", minHoldEndsOnTime, Queues | Notified},
	{"a retained key is given to whoever wants it", retainedKeyIsGivenToOthers, AnyStore},
	{"Inspect and List tell what there is, and no secrets", inspectAndListTell, Queues},
	{"hostile keys are keys like others", hostileKeysAreKeys, AnyStore},

	// Losing.
	{"a holder that never unlocks has lost the lease before the next has it", forgottenLeaseEnds, AnyStore},
	{"a holder that is cut off has lost the lease before the next has it", cutOffHolderLosesLease, Queues},
	{"a killed holder is succeeded after its TTL", killedHolderIsSucceeded, Processes},
	{"a killed waiter is passed over", killedWaiterIsPassedOver, Processes},
	{"a holder that was paused wakes up without its lease", pausedHolderHasLost, Processes},
	{"a waiter that was paused over its grant comes back to its place", pausedWaiterComesBack, Processes},
	{"force takes the key from its holder", forceTakesTheKey, Queues | Notified},
	{"the maximum hold serves local and remote waiters alike", maxHoldServesAll, AnyStore},

	// Redis.
	{"what others wrote under our keys is neither used nor destroyed", foreignDataIsLeftAlone, Redis},
}

// A Store is a kind of store that stories run on. Prepare is called once. It returns what
// opens an Env for each story.
type Store struct {
	Name    string
	Offers  Need
	Prepare func(t *testing.T) (open func(t *testing.T) *Env)
}

// Run runs on each store the stories that it is fit for.
func Run(t *testing.T, stores []Store) {
	for _, s := range stores {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			open := s.Prepare(t)
			for _, story := range Stories {
				if !story.Needs.metBy(s.Offers) {
					continue
				}
				t.Run(story.Name, func(t *testing.T) {
					t.Parallel()
					tell(t, open, story.Run)
				})
			}
		})
	}
}
