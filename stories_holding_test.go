// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

func anotherGoroutineUnlocks(p *place) {
	ours, theirs := p.client(), p.client()
	leases := make(chan *asynclock.Lease)
	unlocked := make(chan error)
	go func() {
		for l := range leases {
			unlocked <- l.Unlock(p.ctx)
		}
		close(unlocked)
	}()
	lease := p.lock(ours, "key")
	leases <- lease
	if err := <-unlocked; err != nil {
		p.Errorf("Unlock by another goroutine: got %v, want no error", err)
	}
	close(leases)
	if err := lease.Err(); !errors.Is(err, asynclock.ErrUnlocked) || errors.Is(err, asynclock.ErrLost) {
		p.Errorf("the lease: got %v, want ErrUnlocked, which is no loss", err)
	}
	if err := lease.Unlock(p.ctx); err != nil {
		p.Errorf("Unlock once more: got %v, want the first answer, no error", err)
	}

	// Without waiting, and with a context that has ended: neither keeps the key.
	ended, end := context.WithCancel(p.ctx)
	end()
	start := time.Now()
	for range 3 {
		answer := p.lock(ours, "key").UnlockChan(ended)
		p.unlock(p.lock(theirs, "key"))
		if err := <-answer; err != nil {
			p.Errorf("UnlockChan: got %v, want no error", err)
		}
		// It may say that it did not wait for the confirmation.
		if err := p.lock(ours, "key").Unlock(ended); err != nil && !errors.Is(err, context.Canceled) {
			p.Errorf("Unlock with an ended context: got %v, want nothing or context.Canceled", err)
		}
		p.unlock(p.lock(theirs, "key"))
	}
	p.wantWithin(long/3, start, "giving keys back")
}

func reentryIsByContext(p *place) {
	ours, theirs := p.client(), p.client()
	outer := p.lock(ours, "key")
	ctx, cancel := context.WithCancel(outer.Context())
	defer cancel()
	inner, err := ours.Lock(ctx, "key")
	if err != nil {
		p.Fatal(err)
	}
	if inner.Token() != outer.Token() {
		p.Errorf("token of the inner lease: got %d, want the outer one's, %d", inner.Token(), outer.Token())
	}
	if _, err := ours.TryLock(p.ctx, "key"); !errors.Is(err, asynclock.ErrHeld) {
		p.Errorf("TryLock with an unrelated context: got %v, want ErrHeld", err)
	}
	p.unlock(outer)
	if _, err := theirs.TryLock(p.ctx, "key"); !errors.Is(err, asynclock.ErrHeld) {
		p.Errorf("TryLock while the inner lease lasts: got %v, want ErrHeld", err)
	}
	if !inner.Valid(0) {
		p.Errorf("the inner lease: got %v, want it valid", inner.Err())
	}
	p.unlock(inner)

	err = theirs.WithLock(p.ctx, "key", func(ctx context.Context, first *asynclock.Lease) error {
		return theirs.WithLock(ctx, "key", func(_ context.Context, second *asynclock.Lease) error {
			if second.Token() != first.Token() || first.Token() <= outer.Token() {
				p.Errorf("tokens of nested WithLock: got %d and %d, want the same, larger than %d",
					first.Token(), second.Token(), outer.Token())
			}
			return nil
		})
	})
	if err != nil {
		p.Errorf("nested WithLock: got %v, want no error", err)
	}
}

func withLockReportsLoss(p *place) {
	ours, operator := p.client(), p.client()
	force := func() {
		if held, err := operator.ForceUnlock(p.ctx, "key"); err != nil || !held {
			p.Errorf("ForceUnlock: got %v, %v, want true", held, err)
		}
	}
	err := ours.WithLock(p.ctx, "key", func(ctx context.Context, _ *asynclock.Lease) error {
		force()
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, asynclock.ErrForced) {
				p.Errorf("why the function's context ended: got %v, want ErrForced", cause)
			}
		case <-p.ctx.Done():
			p.Error("the function's context never ended")
		}
		return nil
	})
	if !errors.Is(err, asynclock.ErrLost) || !errors.Is(err, asynclock.ErrForced) {
		p.Errorf("WithLock: got %v, want ErrLost and ErrForced", err)
	}

	broken := errors.New("broken")
	total, err := asynclock.Do(p.ctx, ours, "key", func(ctx context.Context, _ *asynclock.Lease) (int, error) {
		force()
		<-ctx.Done()
		return 7, broken
	})
	if total != 7 || !errors.Is(err, broken) || !errors.Is(err, asynclock.ErrLost) {
		p.Errorf("Do: got %d, %v, want 7, the function's error and ErrLost", total, err)
	}
	p.unlock(p.lock(operator, "key"))
}

func minHoldOutlastsUnlock(p *place) {
	const hold = 700 * time.Millisecond
	ours, theirs := p.client(), p.client()
	start := time.Now()
	first := p.lock(ours, "job", asynclock.WithMinHold(hold))
	claimed := time.Now()
	p.unlock(first)
	for name, locks := range map[string]*asynclock.Client{"the same client": ours, "another client": theirs} {
		early, err := locks.TryLock(p.ctx, "job")
		switch {
		case errors.Is(err, asynclock.ErrHeld):
		case err != nil:
			p.Fatalf("TryLock by %s: got %v, want ErrHeld", name, err)
		case time.Since(start) < hold:
			p.Errorf("TryLock by %s right after Unlock: got a lease, want ErrHeld", name)
			fallthrough
		default: // on a machine that is too slow to tell
			p.unlock(early)
		}
	}
	local := ours.LockChan(p.ctx, "job")
	remote := theirs.LockChan(p.ctx, "job")
	for range 2 {
		var got asynclock.Result
		select {
		case got = <-local:
			local = nil
		case got = <-remote:
			remote = nil
		case <-p.ctx.Done():
			p.Fatal("nobody got the key")
		}
		if took := time.Since(start); took < hold {
			p.Errorf("the next lease: came after %v, want it after %v", took, hold)
		}
		p.wantWithin(hold+heartbeat, claimed, "the next lease")
		lease, err := got.Lease()
		if err != nil {
			p.Fatal(err)
		}
		if lease.Token() <= first.Token() {
			p.Errorf("its token: got %d, want more than %d", lease.Token(), first.Token())
		}
		p.unlock(lease)
	}
}

// secret is what an owner id looks like.
var secret = regexp.MustCompile(`[A-Za-z0-9_-]{22}\.[0-9a-f]{2}`)

func inspectAndListTell(p *place) {
	const many = 40 // of thousands, and of pages, the tests of the stores tell
	holder := p.client(asynclock.WithHolder("the holder"))
	waiter, observer := p.client(asynclock.WithHolder("the waiter")), p.client()
	leases := make([]*asynclock.Lease, many)
	for i := range leases {
		leases[i] = p.lock(holder, fmt.Sprint("order:", i))
	}
	elsewhere := p.lock(holder, "orders are not order:*")
	waiting := waiter.LockChan(p.ctx, "order:7")
	p.awaitWaiters(observer, "order:7", 1)

	info, err := observer.Inspect(p.ctx, "order:7")
	if err != nil {
		p.Fatal(err)
	}
	switch {
	case info.Key != "order:7" || !info.Held || info.Holder != "the holder" || info.Token != leases[7].Token(),
		!p.remains(info.Remaining),
		info.Waiters != 1 || len(info.Queue) != 1 || info.Queue[0].Holder != "the waiter":
		p.Errorf("Inspect: got %+v, want the holder, its token %d, and the waiter", info, leases[7].Token())
	case info.Queue[0].Age < 0 || info.Queue[0].Age > patience:
		p.Errorf("how long the waiter has waited: got %v, want a little", info.Queue[0].Age)
	}
	if info, err := observer.Inspect(p.ctx, "nobody's"); err != nil || info.Held || info.Waiters != 0 {
		p.Errorf("Inspect of a free key: got %+v, %v, want nobody", info, err)
	}

	var keys []string
	for info, err := range observer.List(p.ctx, "order:") {
		if err != nil {
			p.Fatal(err)
		}
		if text := fmt.Sprintf("%+v", info); secret.MatchString(text) {
			p.Errorf("List: got %s, want no owner in it", text)
		}
		if !info.Held || info.Holder != "the holder" {
			p.Errorf("List: got %+v, want it held by the holder", info)
		}
		keys = append(keys, info.Key)
	}
	slices.Sort(keys)
	if got := len(slices.Compact(keys)); got != many {
		p.Errorf("List: got %d keys, want %d", got, many)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "order:") {
			p.Errorf("List: got %q, want the prefix \"order:\"", key)
		}
	}
	if text := fmt.Sprintf("%+v", info); secret.MatchString(text) {
		p.Errorf("Inspect: got %s, want no owner in it", text)
	}

	p.unlock(elsewhere)
	for _, l := range leases {
		p.unlock(l)
	}
	p.unlock(p.claim(waiting))
}

func hostileKeysAreKeys(p *place) {
	keys := []string{
		" ", "*", "?", "[a-z]", `\`, "%", "%7B", "%25", "{", "}", "{}", "{}x}", "}{", "{a}{b}", "{b00}", "a b",
		":", ":l", "key", "key:l", "key:q", "key:l:l", "b:c:l", "'", `"`, "`", "$(id)", "-", "0", "nil", "..", "/",
		"\r\nFLUSHALL\r\n", "\x00", "\x1b[31m", "\x7f", "ключ", "🔒", "é", "e\u0301", "\u202e",
		strings.Repeat("x", asynclock.MaxKeyLen), strings.Repeat("{", asynclock.MaxKeyLen),
		strings.Repeat("ü", asynclock.MaxKeyLen/2),
	}
	ours, theirs := p.client(), p.client()
	leases := make(map[string]*asynclock.Lease)
	for _, key := range keys {
		lease, err := ours.TryLock(p.ctx, key)
		if err != nil {
			p.Fatalf("TryLock(%q): got %v, want a lease: no other key is this one", key, err)
		}
		leases[key] = lease
	}
	listed := make(map[string]bool)
	for info, err := range theirs.List(p.ctx, "") {
		if err != nil {
			p.Fatal(err)
		}
		listed[info.Key] = true
	}
	if len(listed) != len(keys) {
		p.Errorf("List: got %d keys, want %d", len(listed), len(keys))
	}
	for _, key := range keys {
		if !listed[key] {
			p.Errorf("List: %q is not in it", key)
		}
		var held *asynclock.HeldError
		if _, err := theirs.TryLock(p.ctx, key); !errors.As(err, &held) || held.Key != key || held.Token != leases[key].Token() {
			p.Errorf("TryLock(%q) by another: got %v, want it held with token %d", key, err, leases[key].Token())
		}
		pending := theirs.LockChan(p.ctx, key)
		p.unlock(leases[key])
		lease := p.claim(pending)
		if lease.Key() != key {
			p.Errorf("key of the lease: got %q, want %q", lease.Key(), key)
		}
		p.unlock(lease)
	}

	for _, key := range []string{"", strings.Repeat("x", asynclock.MaxKeyLen+1), "\xff", "a\xc3"} {
		if _, err := ours.Lock(p.ctx, key); !errors.Is(err, asynclock.ErrBadKey) {
			p.Errorf("Lock(%.20q): got %v, want ErrBadKey", key, err)
		}
		if _, err := ours.Inspect(p.ctx, key); !errors.Is(err, asynclock.ErrBadKey) {
			p.Errorf("Inspect(%.20q): got %v, want ErrBadKey", key, err)
		}
	}
}
