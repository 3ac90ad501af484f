// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// wokenWaiterRunsAtOnce measures several wake-ups: one of them might coincide
// with a heartbeat, but not all.
func wokenWaiterRunsAtOnce(env *Env) {
	holder, waiter := env.client(), env.client()
	for range 5 {
		lease := env.lock(holder, "key")
		pending := waiter.LockChan(env.ctx, "key")
		env.awaitWaiters(holder, "key", 1)
		start := time.Now()
		env.unlock(lease)
		next := env.claim(pending)
		env.wantWithin(soon, start, "from unlock to claim, with a message")
		env.unlock(next)
	}
}

func tryLockSaysWhoHolds(env *Env) {
	holder := env.client(asynclock.WithDescription("the night shift"))
	other, third := env.client(), env.client()
	lease := env.lock(holder, "key")
	pending := third.LockChan(env.ctx, "key")
	env.awaitWaiters(other, "key", 1)

	_, err := env.tryLock(other, "key")
	var held *asynclock.HeldError
	if !errors.Is(err, asynclock.ErrHeld) || !errors.As(err, &held) {
		env.Fatalf("TryLock: got %v, want ErrHeld as a *HeldError", err)
	}
	if held.Key != "key" || held.Holder != "the night shift" || held.Token != lease.Token() || held.Waiters != 1 {
		env.Errorf("TryLock: got %+v, want the night shift with token %d before 1 waiter", *held, lease.Token())
	}
	if !env.remains(held.Remaining) {
		env.Errorf("remaining: got %v, want nearly %v", held.Remaining, long)
	}

	// The holder's own client knows, too.
	if _, err := env.tryLock(holder, "key"); !errors.As(err, &held) || held.Token != lease.Token() {
		env.Errorf("TryLock by the holder's client: got %v, want a *HeldError with token %d", err, lease.Token())
	}
	env.unlock(lease)
	env.unlock(env.claim(pending))
	free, err := other.TryLock(env.ctx, "key")
	if err != nil {
		env.Fatalf("TryLock of a free key: got %v, want a lease", err)
	}
	env.unlock(free)
}

func endedWaitLeavesNoTrace(env *Env) {
	holder, waiter := env.client(), env.client()
	lease := env.lock(holder, "key")

	tired := errors.New("tired of waiting")
	ctx, cancel := context.WithCancelCause(env.ctx)
	failed := make(chan error)
	go func() {
		_, err := waiter.Lock(ctx, "key")
		failed <- err
	}()
	pending := waiter.LockChan(ctx, "key")
	env.awaitWaiters(holder, "key", 1)
	cancel(tired)
	if err := <-failed; !errors.Is(err, context.Canceled) || !errors.Is(err, tired) {
		env.Errorf("Lock: got %v, want context.Canceled and its cause", err)
	}
	if _, err := (<-pending).Lease(); !errors.Is(err, context.Canceled) || !errors.Is(err, tired) {
		env.Errorf("LockChan: got %v, want context.Canceled and its cause", err)
	}
	short, cancelShort := context.WithTimeout(env.ctx, 50*time.Millisecond)
	defer cancelShort()
	if _, err := waiter.Lock(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
		env.Errorf("Lock with a deadline: got %v, want context.DeadlineExceeded", err)
	}
	if _, err := waiter.Lock(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
		env.Errorf("Lock after the deadline: got %v, want context.DeadlineExceeded", err)
	}

	env.awaitWaiters(holder, "key", 0)
	if lease.Err() != nil {
		env.Errorf("the holder's lease: got %v, want no end", lease.Err())
	}
	env.unlock(lease)
	// Where requests have connections of their own, the last one to wait may have come
	// after the look at the queue, and its withdrawal is on its way. A grant that nobody
	// withdrew would last for longer than soon.
	start := time.Now()
	kit.Eventually(env.T, "the key to be free", func() bool {
		info, err := holder.Inspect(env.ctx, "key")
		return err == nil && !info.Held && info.Waiters == 0
	})
	env.wantWithin(soon, start, "the end of the waiting")
}

func futuresAreSelectedOn(env *Env) {
	holder, waiter := env.client(), env.client()
	first, second := env.lock(holder, "first"), env.lock(holder, "second")

	wait, abandon := context.WithCancel(env.ctx)
	defer abandon()
	pendingFirst, pendingSecond := waiter.LockChan(wait, "first"), waiter.LockChan(wait, "second")
	env.unlock(second)
	var lease *asynclock.Lease
	var err error
	select {
	case got := <-pendingFirst:
		_, err = got.Lease()
		env.Fatalf("the held key's future: got %v, want nothing yet", err)
	case got := <-pendingSecond:
		lease, err = got.Lease()
	case <-env.ctx.Done():
		env.Fatal("no future was fulfilled")
	}
	if err != nil || lease.Key() != "second" {
		env.Fatalf("the free key's future: got %v, %v, want its lease", lease, err)
	}

	// The first future is given up, and its place in the queue with it.
	abandon()
	env.awaitWaiters(holder, "first", 0)
	env.unlock(first)
	if !lease.Valid(0) {
		env.Errorf("the claimed lease after its wait's context has ended: got %v, want it valid", lease.Err())
	}
	if _, err := (<-pendingFirst).Lease(); !errors.Is(err, context.Canceled) {
		env.Errorf("claim of the abandoned future: got %v, want context.Canceled", err)
	}
	env.unlock(lease)

	// A future that was fulfilled, and is then given up unclaimed.
	wait, abandon = context.WithCancel(env.ctx)
	defer abandon()
	fulfilled := waiter.LockChan(wait, "third")
	kit.Eventually(env.T, "a grant", func() bool { return len(fulfilled) == 1 })
	start := time.Now()
	abandon()
	env.unlock(env.lock(holder, "third"))
	env.wantWithin(soon, start, "giving an abandoned grant back")
	if _, err := (<-fulfilled).Lease(); !errors.Is(err, context.Canceled) {
		env.Errorf("late claim: got %v, want context.Canceled", err)
	}
}

// whatNobodyReceivesGoesOn has a client with futures that nobody receives from. The key is for whoever wants it, and
// comes back.
func whatNobodyReceivesGoesOn(env *Env) {
	forgetful, next := env.client(), env.client()
	wait, abandon := context.WithCancel(env.ctx)
	defer abandon()
	forgotten := forgetful.LockChan(wait, "key")
	kit.Eventually(env.T, "a grant", func() bool { return len(forgotten) == 1 })
	start := time.Now()
	lease := env.lock(next, "key")
	env.wantWithin(soon+100*time.Millisecond, start, "a lease that nobody received, until it went on")
	if len(forgotten) > 0 {
		env.Errorf("the future has a result while another has the key")
	}
	env.unlock(lease)
	local := env.lock(forgetful, "key")
	env.unlock(local)
	env.unlock(env.claim(forgotten))
}

// loopsAroundASelectGetTheKey has a new future in each turn of a loop.
func loopsAroundASelectGetTheKey(env *Env) {
	ours, theirs := env.client(), env.client()
	wait, abandon := context.WithCancel(env.ctx)
	defer abandon()
	for _, tick := range []time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second} {
		held := env.lock(theirs, "key")
		time.AfterFunc(2*tick+tick/3, func() { held.UnlockChan(env.ctx) })
		start := time.Now()
		ticks := time.NewTicker(tick)
		for lease := (*asynclock.Lease)(nil); lease == nil; {
			select {
			case got := <-ours.LockChan(wait, "key"):
				var err error
				if lease, err = got.Lease(); err != nil {
					env.Fatal(err)
				}
				env.wantWithin(3*tick+soon, start, "a loop with a tick of "+tick.String())
				env.unlock(lease)
			case <-ticks.C:
			}
		}
		ticks.Stop()
		start = time.Now()
		env.unlock(env.lock(theirs, "key"))
		env.wantWithin(soon+100*time.Millisecond, start, "another client, after the loop")
	}
}

func closeLeavesNothing(env *Env) {
	closing, other := env.client(), env.client()
	foreign := env.lock(other, "waited for")
	pending := closing.LockChan(env.ctx, "waited for")
	failed := make(chan error)
	go func() {
		_, err := closing.Lock(env.ctx, "waited for")
		failed <- err
	}()
	env.awaitWaiters(other, "waited for", 1)
	unclaimed := closing.LockChan(env.ctx, "unclaimed")
	kit.Eventually(env.T, "a grant", func() bool { return len(unclaimed) == 1 })
	held := env.lock(closing, "held")

	// Close gives back what nobody holds, and waits for what somebody does.
	closed := make(chan error)
	go func() { closed <- closing.Close(env.ctx) }()
	if err := <-failed; !errors.Is(err, asynclock.ErrClosed) {
		env.Errorf("Lock: got %v, want ErrClosed", err)
	}
	if _, err := (<-pending).Lease(); !errors.Is(err, asynclock.ErrClosed) {
		env.Errorf("waiting future: got %v, want ErrClosed", err)
	}
	start := time.Now()
	env.unlock(env.lock(other, "unclaimed"))
	env.wantWithin(soon, start, "giving the unclaimed key back")
	if _, err := (<-unclaimed).Lease(); !errors.Is(err, asynclock.ErrClosed) {
		env.Errorf("future that nobody received from: got %v, want ErrClosed", err)
	}
	env.awaitWaiters(other, "waited for", 0)
	select {
	case err := <-closed:
		env.Errorf("Close: returned %v while a lease was held, want it to wait", err)
	default:
	}
	if !held.Valid(0) {
		env.Errorf("the held lease while Close waits: got %v, want it valid", held.Err())
	}
	env.unlock(held)
	if err := <-closed; err != nil {
		env.Errorf("Close: got %v, want no error", err)
	}
	env.unlock(foreign)

	for name, call := range map[string]func() error{
		"Lock":        func() error { _, err := closing.Lock(env.ctx, "key"); return err },
		"TryLock":     func() error { _, err := closing.TryLock(env.ctx, "key"); return err },
		"LockChan":    func() error { _, err := (<-closing.LockChan(env.ctx, "key")).Lease(); return err },
		"Inspect":     func() error { _, err := closing.Inspect(env.ctx, "key"); return err },
		"ForceUnlock": func() error { _, err := closing.ForceUnlock(env.ctx, "key", 0); return err },
		"List": func() (err error) {
			for _, err = range closing.List(env.ctx, "") {
			}
			return err
		},
	} {
		if err := call(); !errors.Is(err, asynclock.ErrClosed) {
			env.Errorf("%s after Close: got %v, want ErrClosed", name, err)
		}
	}

	// A Close that is not given the time says what it has left.
	hasty := env.client()
	left := env.lock(hasty, "left", asynclock.WithTTL(short))
	ended, end := context.WithCancel(env.ctx)
	end()
	if err := hasty.Close(ended); !errors.Is(err, context.Canceled) {
		env.Errorf("Close with a lease held and no time: got %v, want context.Canceled", err)
	}
	if err := left.Err(); !errors.Is(err, asynclock.ErrClosed) || errors.Is(err, asynclock.ErrLost) {
		env.Errorf("the lease that was left: got %v, want ErrClosed, which is no loss", err)
	}
	if left.Context().Err() == nil {
		env.Error("the context of the lease that was left goes on")
	}
}
