// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"
)

// rivalsFailures is how other lock libraries have failed their users, each as a
// test of this one on a real server:
//
//	go run ./internal/test/testenv -v -run TestRivalsFailures ./internal/test/acceptance
//
// Statements about other libraries apply to the releases and reports named. Numbers were
// measured with rueidislock 1.0.76, Redis 7.0.15 and two cores.
var rivalsFailures = []struct {
	name string
	test func(*testing.T)
}{
	// rueidislock, without its retry loop: when the server stood still for 60 ms
	// while a free lock was being acquired, the waiter slept on, 20 of 20 times,
	// beside a key that did not exist.
	{"a waiter sleeps beside a free lock after the server paused", waiterAsksAgainAfterAPause},

	// rueidislock waits to be told that a dead holder's key has gone. Redis tells
	// when it deletes the key, and with 200,000 other volatile keys it had not
	// done so 14 s after the TTL.
	{"a dead holder is noticed late among 200,000 other keys", deadHolderIsNoticedAmongManyKeys},

	// rueidislock: when 16 goroutines gave up waiting just as the lock was
	// released, 1 of 200 times the one that went on waiting was never served. The
	// wake-up had gone to one that left.
	{"a wake-up is lost on those who give up", wakeUpIsPassedOnByThoseWhoGiveUp},

	// Redisson's fair lock, issues 1104, 2883, 3004, 5019: the queue's head was
	// dead, or had left, and nobody behind it was served.
	{"the dead head of a fair queue stops the queue", deadHeadIsPassedOver},

	// rueidislock, when packets vanished without an error: the second holder had
	// the lock at 5.0 s, and the first was told at 7.5 s. Also etcd#10811,
	// CURATOR-206 and consul#18271.
	{"two hold a lock when packets vanish", cutOffHolderKnowsFirst},

	// rueidislock: the deadline of the acquisition's context became that of the
	// key, and the hold ended with it, without a cause. In pglock#5 it ended the
	// heartbeat.
	{"the deadline of the wait ends the hold", deadlineOfTheWaitEndsNoHold},

	// Redisson renews one shard after the other: while one hangs, those behind it
	// expire.
	{"renewals wait behind a sick shard", renewalsPassASickShard},

	// Redisson 7272, 2714, 4368, 1626: renewal outlived unlock or an interrupted
	// acquisition, and nobody held the lock for ever.
	{"the watchdog outlives its lock", watchdogEndsWithTheLock},

	// redis-py#3847, and users of Go clients who pass on the request's context
	// (ncps#913, blnk#355): the lock stayed, since the context had ended.
	{"unlock with a cancelled context leaves the lock", cancelledUnlockFreesTheKey},

	// The mistake that Redis' own documentation warns of, a release by plain DEL:
	// whoever comes after the TTL deletes the next holder's key.
	{"a late release deletes the key of the next holder", lateReleaseLeavesTheSuccessorAlone},

	// rueidislock, as it comes: 10,133 EVALSHA in 3 s of holding one lock; without
	// its retry loop, 390 a second for 1,000 locks.
	{"a lock that is held makes traffic", heldLocksAreQuiet},

	// rueidislock: 17.5 commands per handoff with 32 clients. Redisson: all of
	// them are woken, and ask.
	{"commands per handoff grow with the clients", handoffsCostTheSameForMany},

	// Redisson 995, 1466, 1847, 4216, 5046, 5219, 5299: a subscription per lock,
	// from a pool that is never large enough.
	{"subscriptions grow with the locks", waitersShareASubscription},
}

func TestRivalsFailures(t *testing.T) {
	for _, f := range rivalsFailures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.test(t)
		})
	}
}
