// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// wokenWaiterRunsAtOnce measures several wake-ups: one of them might coincide
// with a heartbeat, but not all.
func wokenWaiterRunsAtOnce(p *place) {
	holder, waiter := p.client(), p.client()
	for range 5 {
		lease := p.lock(holder, "key")
		pending := waiter.LockChan(p.ctx, "key")
		p.awaitWaiters(holder, "key", 1)
		start := time.Now()
		p.unlock(lease)
		next := p.claim(pending)
		p.wantWithin(soon, start, "from unlock to claim, with a message")
		p.unlock(next)
	}
}

func tryLockSaysWhoHolds(p *place) {
	holder := p.client(asynclock.WithHolder("the night shift"))
	other, third := p.client(), p.client()
	lease := p.lock(holder, "key")
	pending := third.LockChan(p.ctx, "key")
	p.awaitWaiters(other, "key", 1)

	_, err := other.TryLock(p.ctx, "key")
	var held *asynclock.HeldError
	if !errors.Is(err, asynclock.ErrHeld) || !errors.As(err, &held) {
		p.Fatalf("TryLock: got %v, want ErrHeld as a *HeldError", err)
	}
	if held.Key != "key" || held.Holder != "the night shift" || held.Token != lease.Token() || held.Waiters != 1 {
		p.Errorf("TryLock: got %+v, want the night shift with token %d before 1 waiter", *held, lease.Token())
	}
	if !p.remains(held.Remaining) {
		p.Errorf("remaining: got %v, want nearly %v", held.Remaining, long)
	}

	// The holder's own client knows, too.
	if _, err := holder.TryLock(p.ctx, "key"); !errors.As(err, &held) || held.Token != lease.Token() {
		p.Errorf("TryLock by the holder's client: got %v, want a *HeldError with token %d", err, lease.Token())
	}
	p.unlock(lease)
	p.unlock(p.claim(pending))
	free, err := other.TryLock(p.ctx, "key")
	if err != nil {
		p.Fatalf("TryLock of a free key: got %v, want a lease", err)
	}
	p.unlock(free)
}

func endedWaitLeavesNoTrace(p *place) {
	holder, waiter := p.client(), p.client()
	lease := p.lock(holder, "key")

	tired := errors.New("tired of waiting")
	ctx, cancel := context.WithCancelCause(p.ctx)
	failed := make(chan error)
	go func() {
		_, err := waiter.Lock(ctx, "key")
		failed <- err
	}()
	pending := waiter.LockChan(ctx, "key")
	p.awaitWaiters(holder, "key", 1)
	cancel(tired)
	if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, tired) {
		p.Errorf("Lock: got %v, want context.Canceled and its cause", err)
	}
	if _, err := (<-pending).Lease(); !errors.Is(err, context.Canceled) || !errors.Is(err, tired) {
		p.Errorf("LockChan: got %v, want context.Canceled and its cause", err)
	}
	short, cancelShort := context.WithTimeout(p.ctx, 50*time.Millisecond)
	defer cancelShort()
	if _, err := waiter.Lock(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
		p.Errorf("Lock with a deadline: got %v, want context.DeadlineExceeded", err)
	}
	if _, err := waiter.Lock(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
		p.Errorf("Lock after the deadline: got %v, want context.DeadlineExceeded", err)
	}

	p.awaitWaiters(holder, "key", 0)
	if lease.Err() != nil {
		p.Errorf("the holder's lease: got %v, want no end", lease.Err())
	}
	p.unlock(lease)
	// Where requests have connections of their own, the last one to wait may have come
	// after the look at the queue, and its withdrawal is on its way. A grant that nobody
	// withdrew would last for longer than soon.
	start := time.Now()
	await(p.T, "the key to be free", func() bool {
		info, err := holder.Inspect(p.ctx, "key")
		return err == nil && !info.Held && info.Waiters == 0
	})
	p.wantWithin(soon, start, "the end of the waiting")
}

func futuresAreSelectedOn(p *place) {
	holder, waiter := p.client(), p.client()
	first, second := p.lock(holder, "first"), p.lock(holder, "second")

	wait, abandon := context.WithCancel(p.ctx)
	defer abandon()
	pendingFirst, pendingSecond := waiter.LockChan(wait, "first"), waiter.LockChan(wait, "second")
	p.unlock(second)
	var lease *asynclock.Lease
	var err error
	select {
	case got := <-pendingFirst:
		_, err = got.Lease()
		p.Fatalf("the held key's future: got %v, want nothing yet", err)
	case got := <-pendingSecond:
		lease, err = got.Lease()
	case <-p.ctx.Done():
		p.Fatal("no future was fulfilled")
	}
	if err != nil || lease.Key() != "second" {
		p.Fatalf("the free key's future: got %v, %v, want its lease", lease, err)
	}

	// The first future is given up, and its place in the queue with it.
	abandon()
	p.awaitWaiters(holder, "first", 0)
	p.unlock(first)
	if !lease.Valid(0) {
		p.Errorf("the claimed lease after its wait's context has ended: got %v, want it valid", lease.Err())
	}
	if _, err := (<-pendingFirst).Lease(); !errors.Is(err, context.Canceled) {
		p.Errorf("claim of the abandoned future: got %v, want context.Canceled", err)
	}
	p.unlock(lease)

	// A future that was fulfilled, and is then given up unclaimed.
	wait, abandon = context.WithCancel(p.ctx)
	defer abandon()
	fulfilled := waiter.LockChan(wait, "third")
	await(p.T, "a grant", func() bool { return len(fulfilled) == 1 })
	start := time.Now()
	abandon()
	p.unlock(p.lock(holder, "third"))
	p.wantWithin(soon, start, "giving an abandoned grant back")
	if _, err := (<-fulfilled).Lease(); !errors.Is(err, context.Canceled) {
		p.Errorf("late claim: got %v, want context.Canceled", err)
	}
}

func unclaimedGrantGoesOn(p *place) {
	forgetful, next := p.client(), p.client()
	start := time.Now()
	forgotten := forgetful.LockChan(p.ctx, "key", asynclock.WithTTL(short))
	await(p.T, "a grant", func() bool { return len(forgotten) == 1 })
	lease := p.lock(next, "key")
	p.wantWithin(2*short, start, "an unclaimed grant, until it went on")
	if _, err := (<-forgotten).Lease(); !errors.Is(err, asynclock.ErrNotClaimed) {
		p.Errorf("late claim: got %v, want ErrNotClaimed", err)
	}
	p.unlock(lease)
}

func closeLeavesNothing(p *place) {
	closing, other := p.client(), p.client()
	foreign := p.lock(other, "waited for")
	pending := closing.LockChan(p.ctx, "waited for")
	failed := make(chan error)
	go func() {
		_, err := closing.Lock(p.ctx, "waited for")
		failed <- err
	}()
	p.awaitWaiters(other, "waited for", 1)
	unclaimed := closing.LockChan(p.ctx, "unclaimed")
	await(p.T, "a grant", func() bool { return len(unclaimed) == 1 })
	held := p.lock(closing, "held")

	// Close gives back what nobody holds, and waits for what somebody does.
	closed := make(chan error)
	go func() { closed <- closing.Close(p.ctx) }()
	if err := <-failed; !errors.Is(err, asynclock.ErrClosed) {
		p.Errorf("Lock: got %v, want ErrClosed", err)
	}
	for name, future := range map[string]<-chan asynclock.Result{"waiting": pending, "unclaimed": unclaimed} {
		if _, err := (<-future).Lease(); !errors.Is(err, asynclock.ErrClosed) {
			p.Errorf("%s future: got %v, want ErrClosed", name, err)
		}
	}
	start := time.Now()
	p.unlock(p.lock(other, "unclaimed"))
	p.wantWithin(soon, start, "giving the unclaimed key back")
	p.awaitWaiters(other, "waited for", 0)
	select {
	case err := <-closed:
		p.Errorf("Close: returned %v while a lease was held, want it to wait", err)
	default:
	}
	if !held.Valid(0) {
		p.Errorf("the held lease while Close waits: got %v, want it valid", held.Err())
	}
	p.unlock(held)
	if err := <-closed; err != nil {
		p.Errorf("Close: got %v, want no error", err)
	}
	p.unlock(foreign)

	for name, call := range map[string]func() error{
		"Lock":        func() error { _, err := closing.Lock(p.ctx, "key"); return err },
		"TryLock":     func() error { _, err := closing.TryLock(p.ctx, "key"); return err },
		"LockChan":    func() error { _, err := (<-closing.LockChan(p.ctx, "key")).Lease(); return err },
		"Inspect":     func() error { _, err := closing.Inspect(p.ctx, "key"); return err },
		"ForceUnlock": func() error { _, err := closing.ForceUnlock(p.ctx, "key"); return err },
		"List": func() (err error) {
			for _, err = range closing.List(p.ctx, "") {
			}
			return err
		},
	} {
		if err := call(); !errors.Is(err, asynclock.ErrClosed) {
			p.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}

	// A Close that is not given the time says what it has left.
	hasty := p.client()
	left := p.lock(hasty, "left", asynclock.WithTTL(short))
	ended, end := context.WithCancel(p.ctx)
	end()
	if err := hasty.Close(ended); !errors.Is(err, context.Canceled) {
		p.Errorf("Close with a lease held and no time: got %v, want context.Canceled", err)
	}
	if err := left.Err(); !errors.Is(err, asynclock.ErrClosed) || errors.Is(err, asynclock.ErrLost) {
		p.Errorf("the lease that was left: got %v, want ErrClosed, which is no loss", err)
	}
	if left.Context().Err() == nil {
		p.Error("the context of the lease that was left goes on")
	}
}
