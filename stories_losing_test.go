// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
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
func (p *place) wantSuccession(first, next *asynclock.Lease, done <-chan struct{}) {
	p.Helper()
	select {
	case <-done:
	default:
		p.mistimed("the next lease was claimed before the context of the old one ended, want it after")
	}
	if first.Valid(0) || !errors.Is(first.Err(), asynclock.ErrLost) {
		p.Errorf("the old lease: got %v, want ErrLost", first.Err())
	}
	if !next.Valid(0) {
		p.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	var r resource
	if !r.write(next.Token()) || r.write(first.Token()) {
		p.Errorf("tokens: got %d after %d, want it larger", next.Token(), first.Token())
	}
}

func forgottenLeaseEnds(p *place) {
	ours, theirs := p.client(), p.client()
	start := time.Now()
	first := p.lock(ours, "key", asynclock.WithTTL(short), asynclock.WithoutRenewal())
	done := first.Done()
	next := p.lock(theirs, "key")
	p.wantSuccession(first, next, done)
	if took := time.Since(start); took < short {
		p.Errorf("the next lease: came after %v, want it after the TTL of %v", took, short)
	}
	p.wantWithin(short+heartbeat, start, "the next lease")
	if !errors.Is(first.Err(), asynclock.ErrExpired) {
		p.Errorf("the old lease: got %v, want ErrExpired", first.Err())
	}
	// Its late Unlock says so, and does not touch what is another's now.
	if err := first.Unlock(p.ctx); !errors.Is(err, asynclock.ErrExpired) {
		p.Errorf("late Unlock: got %v, want ErrExpired", err)
	}
	if err := next.Renew(p.ctx, long); err != nil {
		p.Errorf("renewal of the next lease: got %v, want no error", err)
	}
	p.unlock(next)
}

func cutOffHolderLosesLease(p *place) {
	var line cable
	ours, theirs := p.clientOn(&line), p.client()
	first := p.lock(ours, "key", asynclock.WithTTL(short))
	done := first.Done()
	pending := theirs.LockChan(p.ctx, "key")
	p.awaitWaiters(theirs, "key", 1)
	deadline := first.Deadline()
	await(p.T, "a renewal", func() bool { return first.Deadline().Sub(deadline) > short/10 || first.Err() != nil })
	line.cut()
	start := time.Now()
	next := p.claim(pending)
	p.wantSuccession(first, next, done)
	p.wantWithin(short+heartbeat, start, "the next lease after the cut")
	if !errors.Is(first.Err(), asynclock.ErrNotRenewed) {
		p.mistimed("the old lease: got %v, want ErrNotRenewed", first.Err())
	}
	p.unlock(next)
}

// queueBehind returns a future for the key that a child holds.
func (p *place) queueBehind(holder *child) <-chan asynclock.Result {
	p.Helper()
	locks := p.client()
	pending := locks.LockChan(p.ctx, "key")
	await(p.T, "a waiter", func() bool {
		info, err := locks.Inspect(p.ctx, "key")
		return err == nil && info.Waiters == 1 || len(pending) > 0
	})
	if now := holder.does(order{Do: "look"}); !now.Valid {
		p.mistimed("the child's lease: got %+v, want it valid", now)
	}
	return pending
}

func killedHolderIsSucceeded(p *place) {
	first := p.child()
	old := first.does(order{Do: "lock", Key: "key", TTL: short})
	pending := p.queueBehind(first)
	first.kill()
	start := time.Now()
	next := p.claim(pending)
	p.wantWithin(short+heartbeat, start, "the next lease after the kill")
	if next.Token() <= old.Token {
		p.Errorf("its token: got %d, want more than %d", next.Token(), old.Token)
	}
	p.unlock(next)
}

func killedWaiterIsPassedOver(p *place) {
	ours, theirs := p.client(), p.client()
	lease := p.lock(ours, "key")
	dead := p.child()
	dead.does(order{Do: "queue", Key: "key", TTL: short})
	p.awaitWaiters(ours, "key", 1)
	pending := theirs.LockChan(p.ctx, "key")
	p.awaitWaiters(ours, "key", 2)
	dead.kill()
	start := time.Now()
	p.unlock(lease)
	next := p.claim(pending)
	// Should the store not have seen yet that the connection is gone, the dead
	// waiter has the key for the short TTL of an unconfirmed grant.
	p.wantWithin(short+heartbeat, start, "the next lease after a dead waiter")
	p.unlock(next)
}

func pausedHolderHasLost(p *place) {
	sleeper := p.child()
	sleeper.does(order{Do: "lock", Key: "key", TTL: short})
	pending := p.queueBehind(sleeper)
	sleeper.pause()
	next := p.claim(pending)

	// The question is there when it wakes up: it is the first thing it does.
	sleeper.tell(order{Do: "look"})
	sleeper.resume()
	now := sleeper.hears()
	if now.Valid || !now.Ended || !now.Lost {
		p.Errorf("the lease of the holder that was paused: got %+v, want it lost and its context ended", now)
	}
	var r resource
	if !r.write(next.Token()) || r.write(now.Token) {
		p.Errorf("tokens: got %d after %d, want the paused holder's refused", next.Token(), now.Token)
	}
	sleeper.does(order{Do: "unlock"})
	if err := next.Renew(p.ctx, long); err != nil {
		p.Errorf("renewal after the late unlock: got %v, want no error", err)
	}
	p.unlock(next)
}

func pausedWaiterComesBack(p *place) {
	const ttl = 3 * short // of a grant that nobody confirms, three tenths
	ours, theirs := p.client(), p.client()
	lease := p.lock(ours, "key")
	sleeper := p.child()
	sleeper.does(order{Do: "queue", Key: "key", TTL: ttl})
	p.awaitWaiters(ours, "key", 1)
	pending := theirs.LockChan(p.ctx, "key", asynclock.WithTTL(ttl))
	p.awaitWaiters(ours, "key", 2)

	// Its grant runs out, for nobody confirms it, and the next one has the key.
	sleeper.pause()
	p.unlock(lease)
	next := p.claim(pending)
	last := ours.LockChan(p.ctx, "key")
	p.awaitWaiters(ours, "key", 1)
	sleeper.resume()

	// The stale grant that it finds now does not make it a holder. It is back in
	// the queue before those who came later.
	sleeper.tell(order{Do: "claim"})
	p.awaitWaiters(ours, "key", 2)
	if !next.Valid(0) {
		p.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	p.unlock(next)
	if p.sessions { // its place was its session's; it is back at the tail
		p.unlock(p.claim(last))
	}
	back := sleeper.hears()
	if back.Token <= next.Token() {
		p.Errorf("the paused waiter's token: got %d, want more than %d", back.Token, next.Token())
	}
	if !back.Valid || len(last) > 0 {
		p.mistimed("the paused waiter's lease: got %+v, want it valid, and the last waiter without an answer (it has %d)", back, len(last))
	}
	sleeper.does(order{Do: "unlock"})
	if !p.sessions {
		p.unlock(p.claim(last))
	}
}

func forceTakesTheKey(p *place) {
	ours, theirs, operator := p.client(), p.client(), p.client()
	first := p.lock(ours, "key")
	pending := theirs.LockChan(p.ctx, "key")
	p.awaitWaiters(operator, "key", 1)
	start := time.Now()
	if held, err := operator.ForceUnlock(p.ctx, "key"); err != nil || !held {
		p.Errorf("ForceUnlock: got %v, %v, want true", held, err)
	}
	next := p.claim(pending)
	p.awaitEnd(first)
	p.wantWithin(soon, start, "force")
	if !errors.Is(first.Err(), asynclock.ErrLost) {
		p.Errorf("the old lease: got %v, want ErrLost", first.Err())
	}
	why := asynclock.ErrForced
	if !errors.Is(first.Err(), why) {
		p.mistimed("the old lease: got %v, want ErrForced", first.Err())
		why = asynclock.ErrStolen // as a renewal says that came before the message
	}
	if err := first.Unlock(p.ctx); !errors.Is(err, why) {
		p.Errorf("its Unlock: got %v, want %v", err, why)
	}
	if next.Token() <= first.Token() {
		p.Errorf("the next token: got %d, want more than %d", next.Token(), first.Token())
	}
	if !next.Valid(0) {
		p.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	p.unlock(next)
	if held, err := operator.ForceUnlock(p.ctx, "key"); err != nil || held {
		p.Errorf("ForceUnlock of a free key: got %v, %v, want false", held, err)
	}
}

func maxHoldServesAll(p *place) {
	const hold = time.Second // which is the TTL, too, and a busy server takes a while for a renewal
	ours, theirs := p.client(), p.client()
	before := time.Now()
	stuck := p.lock(ours, "key", asynclock.WithMaxHold(hold))
	start := time.Now()
	local, remote := ours.LockChan(p.ctx, "key"), theirs.LockChan(p.ctx, "key")
	p.awaitEnd(stuck)
	if took := time.Since(before); took < hold {
		p.Errorf("the stuck lease: ended after %v, want %v", took, hold)
	}
	p.wantWithin(hold+soon, start, "the stuck lease")
	if err := stuck.Err(); !errors.Is(err, asynclock.ErrMaxHold) || !errors.Is(err, asynclock.ErrLost) {
		p.mistimed("the stuck lease: got %v, want ErrMaxHold", err)
	}
	for local != nil || remote != nil {
		var got asynclock.Result
		select {
		case got = <-local:
			local = nil
		case got = <-remote:
			remote = nil
		case <-p.ctx.Done():
			p.Fatal("a waiter was not served")
		}
		lease, err := got.Lease()
		if err != nil {
			p.Fatal(err)
		}
		p.wantWithin(hold+soon, start, "serving a waiter after the maximum hold")
		if lease.Token() <= stuck.Token() {
			p.Errorf("its token: got %d, want more than %d", lease.Token(), stuck.Token())
		}
		p.unlock(lease)
	}
}
