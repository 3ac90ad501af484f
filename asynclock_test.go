// SPDX-License-Identifier: Apache-2.0

// Package asynclockgo_test is the module seen from outside: stories that a user
// could tell, over every store there is.
package asynclockgo_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/needed"
	"github.com/asynclock/asynclock-go/internal/redistest"
)

// A story is what users of a lock go through, and what they may count on. It
// runs at a place of its own, in parallel with all others.
type story struct {
	name string
	tell func(*place)
	// needs says what kind of store it takes.
	needs need
}

type need int

const (
	anyStore need = iota
	// queues: clients are served in their order, and their number is known.
	queues
	// processes: other processes reach the store, so that they can be killed.
	processes
	// redisItself: the story looks at Redis, or does something to it.
	redisItself
)

// told, besides one of these: a holder is told at once what happens to its lease.
const told need = 1 << 8

// metBy reports whether a store that offers so much is enough.
func (n need) metBy(offers need) bool { return n&^told <= offers&^told && n&told <= offers&told }

var stories = []story{
	// Exclusion and order.
	{"a counter that nobody protects loses nothing", counterLosesNothing, anyStore},
	{"a file that processes bump loses nothing", fileLosesNothing, processes},
	{"tokens rise across all clients", tokensRise, anyStore},
	{"clients are served in the order they queued", clientsAreServedInOrder, queues},
	{"a thousand waiters on five clients are drained", thousandWaitersAreDrained, queues},

	// Waiting.
	{"a waiter that is woken runs at once", wokenWaiterRunsAtOnce, queues},
	{"TryLock says who holds the key", tryLockSaysWhoHolds, queues},
	{"a wait that its context ended leaves no trace", endedWaitLeavesNoTrace, queues},
	{"a future is selected on, and an abandoned one holds nothing", futuresAreSelectedOn, queues},
	{"a grant that nobody claims goes on to the next", unclaimedGrantGoesOn, anyStore},
	{"clients that close tell their waiters and leave nothing behind", closeLeavesNothing, queues},

	// Holding.
	{"another goroutine unlocks", anotherGoroutineUnlocks, anyStore},
	{"re-entry is by context", reentryIsByContext, anyStore},
	{"WithLock reports a loss that its function did not notice", withLockReportsLoss, anyStore | told},
	{"the minimum hold outlasts Unlock", minHoldOutlastsUnlock, anyStore},
	{"a retained key is given to whoever wants it", retainedKeyIsGivenToOthers, anyStore},
	{"Inspect and List tell what there is, and no secrets", inspectAndListTell, queues},
	{"hostile keys are keys like others", hostileKeysAreKeys, anyStore},

	// Losing.
	{"a holder that never unlocks has lost the lease before the next has it", forgottenLeaseEnds, anyStore},
	{"a holder that is cut off has lost the lease before the next has it", cutOffHolderLosesLease, queues},
	{"a killed holder is succeeded after its TTL", killedHolderIsSucceeded, processes},
	{"a killed waiter is passed over", killedWaiterIsPassedOver, processes},
	{"a holder that was paused wakes up without its lease", pausedHolderHasLost, processes},
	{"a waiter that was paused over its grant comes back to its place", pausedWaiterComesBack, processes},
	{"force takes the key from its holder", forceTakesTheKey, queues | told},
	{"the maximum hold serves local and remote waiters alike", maxHoldServesAll, anyStore},

	// Redis.
	{"what others wrote under our keys is neither used nor destroyed", foreignDataIsLeftAlone, redisItself},
}

func TestStories(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			open := s.prepare(t)
			for _, story := range stories {
				if !story.needs.metBy(s.offers) {
					continue
				}
				t.Run(story.name, func(t *testing.T) {
					t.Parallel()
					tell(t, open, story.tell)
				})
			}
		})
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		beChild()
		return
	}
	needed.InParallel(16)
	// pgx says goodbye to a server that is cut off for up to 15 s.
	pgx := goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn.(*PgConn).asyncClose.func1")
	goleak.VerifyTestMain(m, append(redistest.Leftover(), pgx)...)
}
