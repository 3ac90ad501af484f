// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A resource is what a lock protects. It refuses tokens smaller than the largest
// one it has seen.
type resource struct{ largest atomic.Int64 }

func (r *resource) write(token int64) bool {
	for {
		largest := r.largest.Load()
		if token < largest {
			return false
		}
		if r.largest.CompareAndSwap(largest, token) {
			return true
		}
	}
}

// wantSuccession is called when the next lease has just been claimed. It checks
// that the old one had ended by itself (done is what it was before, for asking
// for it now could be what ends it), and that its holder can be kept out.
func (env *Env) wantSuccession(first, next *asynclock.Lease, done <-chan struct{}) {
	env.Helper()
	select {
	case <-done:
	default:
		env.mistimed("the next lease was claimed before the context of the old one ended, want it after")
	}
	if first.Valid(0) || !errors.Is(first.Err(), asynclock.ErrLost) {
		env.Errorf("the old lease: got %v, want ErrLost", first.Err())
	}
	if !next.Valid(0) {
		env.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	var r resource
	if !r.write(next.Token()) || r.write(first.Token()) {
		env.Errorf("tokens: got %d after %d, want it larger", next.Token(), first.Token())
	}
}

func forgottenLeaseEnds(env *Env) {
	ours, theirs := env.client(), env.client()
	start := time.Now()
	first := env.lock(ours, "key", asynclock.WithTTL(short), asynclock.WithRenewal(false))
	done := first.Done()
	next := env.lock(theirs, "key")
	env.wantSuccession(first, next, done)
	if took := time.Since(start); took < short {
		env.Errorf("the next lease: came after %v, want it after the TTL of %v", took, short)
	}
	env.wantWithin(short+heartbeat, start, "the next lease")
	if !errors.Is(first.Err(), asynclock.ErrExpired) {
		env.Errorf("the old lease: got %v, want ErrExpired", first.Err())
	}
	// Its late Unlock says so, and does not touch what is another's now.
	if err := first.Unlock(env.ctx); !errors.Is(err, asynclock.ErrExpired) {
		env.Errorf("late Unlock: got %v, want ErrExpired", err)
	}
	if err := next.Renew(env.ctx, long); err != nil {
		env.Errorf("renewal of the next lease: got %v, want no error", err)
	}
	env.unlock(next)
}

func cutOffHolderLosesLease(env *Env) {
	var line faultconn.Line
	ours, theirs := env.clientOn(&line), env.client()
	first := env.lock(ours, "key", asynclock.WithTTL(short))
	done := first.Done()
	pending := theirs.LockChan(env.ctx, "key")
	env.awaitWaiters(theirs, "key", 1)
	deadline := first.Deadline()
	kit.Eventually(env.T, "a renewal", func() bool { return first.Deadline().Sub(deadline) > short/10 || first.Err() != nil })
	line.Cut()
	start := time.Now()
	next := env.claim(pending)
	env.wantSuccession(first, next, done)
	env.wantWithin(short+heartbeat, start, "the next lease after the cut")
	if !errors.Is(first.Err(), asynclock.ErrNotRenewed) {
		env.mistimed("the old lease: got %v, want ErrNotRenewed", first.Err())
	}
	env.unlock(next)
}

// queueBehind returns a future for the key that a worker holds.
func (env *Env) queueBehind(holder *worker) <-chan asynclock.Result {
	env.Helper()
	locks := env.client()
	pending := locks.LockChan(env.ctx, "key")
	kit.Eventually(env.T, "a waiter", func() bool {
		info, err := locks.Inspect(env.ctx, "key")
		return err == nil && info.Waiters == 1 || len(pending) > 0
	})
	if now := holder.does(order{Do: "look"}); !now.Valid {
		env.mistimed("the worker's lease: got %+v, want it valid", now)
	}
	return pending
}

func killedHolderIsSucceeded(env *Env) {
	first := env.worker()
	old := first.does(order{Do: "lock", Key: "key", TTL: short})
	pending := env.queueBehind(first)
	first.kill()
	start := time.Now()
	next := env.claim(pending)
	env.wantWithin(short+heartbeat, start, "the next lease after the kill")
	if next.Token() <= old.Token {
		env.Errorf("its token: got %d, want more than %d", next.Token(), old.Token)
	}
	env.unlock(next)
}

func killedWaiterIsPassedOver(env *Env) {
	ours, theirs := env.client(), env.client()
	lease := env.lock(ours, "key")
	dead := env.worker()
	dead.does(order{Do: "queue", Key: "key", TTL: short})
	env.awaitWaiters(ours, "key", 1)
	pending := theirs.LockChan(env.ctx, "key")
	env.awaitWaiters(ours, "key", 2)
	dead.kill()
	start := time.Now()
	env.unlock(lease)
	next := env.claim(pending)
	// Should the store not have seen yet that the connection is gone, the dead
	// waiter has the key for the short TTL of an unconfirmed grant.
	env.wantWithin(short+heartbeat, start, "the next lease after a dead waiter")
	env.unlock(next)
}

func pausedHolderHasLost(env *Env) {
	sleeper := env.worker()
	sleeper.does(order{Do: "lock", Key: "key", TTL: short})
	pending := env.queueBehind(sleeper)
	sleeper.pause()
	next := env.claim(pending)

	// The question is there when it wakes up: it is the first thing it does.
	sleeper.tell(order{Do: "look"})
	sleeper.resume()
	now := sleeper.hears()
	if now.Valid || !now.Ended || !now.Lost {
		env.Errorf("the lease of the holder that was paused: got %+v, want it lost and its context ended", now)
	}
	var r resource
	if !r.write(next.Token()) || r.write(now.Token) {
		env.Errorf("tokens: got %d after %d, want the paused holder's refused", next.Token(), now.Token)
	}
	sleeper.does(order{Do: "unlock"})
	if err := next.Renew(env.ctx, long); err != nil {
		env.Errorf("renewal after the late unlock: got %v, want no error", err)
	}
	env.unlock(next)
}

func pausedWaiterComesBack(env *Env) {
	const ttl = 3 * short // of a grant that nobody confirms, three tenths
	ours, theirs := env.client(), env.client()
	lease := env.lock(ours, "key")
	sleeper := env.worker()
	sleeper.does(order{Do: "queue", Key: "key", TTL: ttl})
	env.awaitWaiters(ours, "key", 1)
	pending := theirs.LockChan(env.ctx, "key", asynclock.WithTTL(ttl))
	env.awaitWaiters(ours, "key", 2)

	// Its grant runs out, for nobody confirms it, and the next one has the key.
	sleeper.pause()
	env.unlock(lease)
	if wrong := env.comesBack(sleeper, ours, pending); wrong != "" {
		env.mistimed("%s", wrong)
		sleeper.kill()
		theirs.Close(env.ctx) // what it has is of no use any more
		env.unlock(env.lock(ours, "key"))
	}
}

// comesBack is the rest of that story, from when the next one is to have the key. It returns what went wrong
// and would if a process stood still: leases end then.
func (env *Env) comesBack(sleeper *worker, ours *asynclock.Client, pending <-chan asynclock.Result) (wrong string) {
	next, err := (<-pending).Lease()
	if err != nil {
		return fmt.Sprintf("the next lease: got %v, want it claimed", err)
	}
	ctx, leave := context.WithCancel(env.ctx)
	defer leave()
	last := ours.LockChan(ctx, "key")
	if !env.awaitBehind(next, ours, 1) {
		return fmt.Sprintf("the next lease: got %v, want it valid until one waits", next.Err())
	}
	sleeper.resume()

	// The stale grant that it finds now does not make it a holder. It is back in
	// the queue before those who came later.
	sleeper.tell(order{Do: "claim"})
	if !env.awaitBehind(next, ours, 2) {
		return fmt.Sprintf("the next lease: got %v, want it valid until two wait", next.Err())
	}
	if err := next.Unlock(env.ctx); err != nil {
		return fmt.Sprintf("the next lease: got %v, want it unlocked", err)
	}
	if env.Sessions { // its place was its session's; it is back at the tail
		env.unlock(env.claim(last))
	}
	back := sleeper.hears()
	if back.Token <= next.Token() {
		env.Errorf("the paused waiter's token: got %d, want more than %d", back.Token, next.Token())
	}
	if !back.Valid || len(last) > 0 {
		return fmt.Sprintf("the paused waiter's lease: got %+v, want it valid, and the last waiter without an answer (it has %d)", back, len(last))
	}
	sleeper.does(order{Do: "unlock"})
	if !env.Sessions {
		env.unlock(env.claim(last))
	}
	return ""
}

// awaitBehind waits until n clients are queued behind a lease, and reports false if it has ended.
func (env *Env) awaitBehind(lease *asynclock.Lease, c *asynclock.Client, n int) bool {
	env.Helper()
	kit.Eventually(env.T, "waiters to queue", func() bool {
		info, err := c.Inspect(env.ctx, "key")
		return lease.Err() != nil || err == nil && info.Waiters == n
	})
	return lease.Valid(0)
}

func forceTakesTheKey(env *Env) {
	ours, theirs, operator := env.client(), env.client(), env.client()
	first := env.lock(ours, "key")
	pending := theirs.LockChan(env.ctx, "key")
	env.awaitWaiters(operator, "key", 1)
	info, err := operator.Inspect(env.ctx, "key")
	if err != nil {
		env.Fatal(err)
	}
	meant := info.Token
	start := time.Now()
	if held, err := operator.ForceUnlock(env.ctx, "key", meant); err != nil || !held {
		env.Errorf("ForceUnlock: got %v, %v, want true", held, err)
	}
	next := env.claim(pending)
	if meant != 0 { // as if the answer had been lost
		if held, err := operator.ForceUnlock(env.ctx, "key", meant); held || !errors.Is(err, asynclock.ErrHeld) {
			env.Errorf("ForceUnlock repeated: got %v, %v, want ErrHeld", held, err)
		}
	}
	env.awaitEnd(first)
	env.wantWithin(soon, start, "force")
	if !errors.Is(first.Err(), asynclock.ErrLost) {
		env.Errorf("the old lease: got %v, want ErrLost", first.Err())
	}
	why := asynclock.ErrForced
	if !errors.Is(first.Err(), why) {
		env.mistimed("the old lease: got %v, want ErrForced", first.Err())
		why = asynclock.ErrStolen // as a renewal says that came before the message
	}
	if err := first.Unlock(env.ctx); !errors.Is(err, why) {
		env.Errorf("its Unlock: got %v, want %v", err, why)
	}
	if next.Token() <= first.Token() {
		env.Errorf("the next token: got %d, want more than %d", next.Token(), first.Token())
	}
	if !next.Valid(0) {
		env.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	env.unlock(next)
	if held, err := operator.ForceUnlock(env.ctx, "key", 0); err != nil || held {
		env.Errorf("ForceUnlock of a free key: got %v, %v, want false", held, err)
	}
}

func maxHoldServesAll(env *Env) {
	const hold = time.Second // which is the TTL, too, and a busy server takes a while for a renewal
	ours, theirs := env.client(), env.client()
	before := time.Now()
	stuck := env.lock(ours, "key", asynclock.WithMaxHold(hold))
	start := time.Now()
	local, remote := ours.LockChan(env.ctx, "key"), theirs.LockChan(env.ctx, "key")
	env.awaitEnd(stuck)
	if took := time.Since(before); took < hold {
		env.Errorf("the stuck lease: ended after %v, want %v", took, hold)
	}
	env.wantWithin(hold+soon, start, "the stuck lease")
	if err := stuck.Err(); !errors.Is(err, asynclock.ErrMaxHold) || !errors.Is(err, asynclock.ErrLost) {
		env.mistimed("the stuck lease: got %v, want ErrMaxHold", err)
	}
	for local != nil || remote != nil {
		lease := env.claimEither(&local, &remote)
		env.wantWithin(hold+soon, start, "serving a waiter after the maximum hold")
		if lease.Token() <= stuck.Token() {
			env.Errorf("its token: got %d, want more than %d", lease.Token(), stuck.Token())
		}
		env.unlock(lease)
	}
}
