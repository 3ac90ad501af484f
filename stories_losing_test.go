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

// endOf notes when a lease's context ends.
func endOf(l *asynclock.Lease) <-chan time.Time {
	ended := make(chan time.Time, 1)
	done := l.Done()
	go func() { // ends with the lease
		<-done
		ended <- time.Now()
	}()
	return ended
}

// wantSuccession checks that a lease ended by itself, that the next one began
// only then, and that its holder can be kept out.
func (p *place) wantSuccession(first, next *asynclock.Lease, ended <-chan time.Time, claimed time.Time) {
	p.Helper()
	select {
	case at := <-ended:
		if at.After(claimed) {
			p.Errorf("the context of the old lease ended %v after the next one was claimed, want it before", at.Sub(claimed))
		}
	case <-p.ctx.Done():
		p.Fatal("the context of the old lease never ended")
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
	ended := endOf(first)
	next := p.lock(theirs, "key")
	claimed := time.Now()
	p.wantSuccession(first, next, ended, claimed)
	if took := claimed.Sub(start); took < short || took > short+heartbeat {
		p.Errorf("the next lease: came after %v, want it after the TTL of %v and a heartbeat at most", took, short)
	}
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
	ended := endOf(first)
	pending := theirs.LockChan(p.ctx, "key")
	p.awaitWaiters(theirs, "key", 1)
	deadline := first.Deadline()
	await(p.T, "a renewal", func() bool { return first.Deadline().Sub(deadline) > short/10 })
	line.cut()
	start := time.Now()
	next := p.claim(pending)
	claimed := time.Now()
	p.wantSuccession(first, next, ended, claimed)
	if took := claimed.Sub(start); took > short+heartbeat {
		p.Errorf("the next lease: came %v after the cut, want at most the TTL of %v and a heartbeat", took, short)
	}
	if !errors.Is(first.Err(), asynclock.ErrNotRenewed) {
		p.Errorf("the old lease: got %v, want ErrNotRenewed", first.Err())
	}
	p.unlock(next)
}

func killedHolderIsSucceeded(p *place) {
	first := p.child()
	old := first.does(order{Do: "lock", Key: "key", TTL: short})
	locks := p.client()
	pending := locks.LockChan(p.ctx, "key")
	p.awaitWaiters(locks, "key", 1)
	first.kill()
	start := time.Now()
	next := p.claim(pending)
	if took := time.Since(start); took > short+heartbeat {
		p.Errorf("the next lease: came %v after the kill, want at most the TTL of %v and a heartbeat", took, short)
	}
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
	if took := time.Since(start); took > short+heartbeat {
		p.Errorf("the next lease: came after %v, want at most the dead waiter's TTL of %v and a heartbeat", took, short)
	}
	p.unlock(next)
}

func pausedHolderHasLost(p *place) {
	sleeper := p.child()
	old := sleeper.does(order{Do: "lock", Key: "key", TTL: short})
	if !old.Valid {
		p.Fatalf("the child's lease: got %+v, want it valid", old)
	}
	locks := p.client()
	pending := locks.LockChan(p.ctx, "key")
	p.awaitWaiters(locks, "key", 1)
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
	sleeper.resume()

	// The stale grant that it finds now does not make it a holder. It is back in
	// the queue before those who came later.
	sleeper.tell(order{Do: "claim"})
	p.awaitWaiters(ours, "key", 2)
	if !next.Valid(0) {
		p.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	p.unlock(next)
	back := sleeper.hears()
	if !back.Valid || back.Token <= next.Token() {
		p.Errorf("the paused waiter's lease: got %+v, want it valid with a token above %d", back, next.Token())
	}
	if len(last) > 0 {
		p.Error("the last waiter has its answer while the paused one holds the key")
	}
	sleeper.does(order{Do: "unlock"})
	p.unlock(p.claim(last))
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
	if took := time.Since(start); took > soon {
		p.Errorf("force: took %v, want it at once", took)
	}
	if err := first.Err(); !errors.Is(err, asynclock.ErrForced) || !errors.Is(err, asynclock.ErrLost) {
		p.Errorf("the old lease: got %v, want ErrForced", err)
	}
	if err := first.Unlock(p.ctx); !errors.Is(err, asynclock.ErrForced) {
		p.Errorf("its Unlock: got %v, want ErrForced", err)
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
	const hold = 300 * time.Millisecond
	ours, theirs := p.client(), p.client()
	before := time.Now()
	stuck := p.lock(ours, "key", asynclock.WithMaxHold(hold))
	start := time.Now()
	local, remote := ours.LockChan(p.ctx, "key"), theirs.LockChan(p.ctx, "key")
	p.awaitEnd(stuck)
	if took := time.Since(start); time.Since(before) < hold || took > hold+soon {
		p.Errorf("the stuck lease: ended after %v, want %v", took, hold)
	}
	if err := stuck.Err(); !errors.Is(err, asynclock.ErrMaxHold) || !errors.Is(err, asynclock.ErrLost) {
		p.Errorf("the stuck lease: got %v, want ErrMaxHold", err)
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
		if took := time.Since(start); time.Since(before) < hold || took > hold+soon {
			p.Errorf("a waiter was served after %v, want it little after the maximum hold of %v", took, hold)
		}
		if lease.Token() <= stuck.Token() {
			p.Errorf("its token: got %d, want more than %d", lease.Token(), stuck.Token())
		}
		p.unlock(lease)
	}
}
