// SPDX-License-Identifier: Apache-2.0

package acceptance

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

func anotherGoroutineUnlocks(env *Env) {
	ours, theirs := env.client(), env.client()
	leases := make(chan *asynclock.Lease)
	unlocked := make(chan error)
	go func() {
		for l := range leases {
			unlocked <- l.Unlock(env.ctx)
		}
		close(unlocked)
	}()
	lease := env.lock(ours, "key")
	leases <- lease
	if err := <-unlocked; err != nil {
		env.Errorf("Unlock by another goroutine: got %v, want no error", err)
	}
	close(leases)
	if err := lease.Err(); !errors.Is(err, asynclock.ErrUnlocked) || errors.Is(err, asynclock.ErrLost) {
		env.Errorf("the lease: got %v, want ErrUnlocked, which is no loss", err)
	}
	if err := lease.Unlock(env.ctx); err != nil {
		env.Errorf("Unlock once more: got %v, want the first answer, no error", err)
	}

	// Without waiting, and with a context that has ended: neither keeps the key.
	ended, end := context.WithCancel(env.ctx)
	end()
	start := time.Now()
	for range 3 {
		answer := env.lock(ours, "key").UnlockChan(ended)
		env.unlock(env.lock(theirs, "key"))
		if err := <-answer; err != nil {
			env.Errorf("UnlockChan: got %v, want no error", err)
		}
		// It may say that it did not wait for the confirmation.
		if err := env.lock(ours, "key").Unlock(ended); err != nil && !errors.Is(err, context.Canceled) {
			env.Errorf("Unlock with an ended context: got %v, want nothing or context.Canceled", err)
		}
		env.unlock(env.lock(theirs, "key"))
	}
	env.wantWithin(long/3, start, "giving keys back")
}

func reentryIsByContext(env *Env) {
	ours, theirs := env.client(), env.client()
	outer := env.lock(ours, "key")
	ctx, cancel := context.WithCancel(outer.Context())
	defer cancel()
	if _, err := ours.Lock(ctx, "key"); !errors.Is(err, asynclock.ErrReentry) {
		env.Errorf("Lock under a lease: got %v, want ErrReentry", err)
	}
	inner, err := ours.Lock(ctx, "key", asynclock.WithReentry(true))
	if err != nil {
		env.Fatal(err)
	}
	if inner.Token() != outer.Token() {
		env.Errorf("token of the inner lease: got %d, want the outer one's, %d", inner.Token(), outer.Token())
	}
	if _, err := env.tryLock(ours, "key"); !errors.Is(err, asynclock.ErrHeld) {
		env.Errorf("TryLock with an unrelated context: got %v, want ErrHeld", err)
	}
	env.unlock(outer)
	if _, err := env.tryLock(theirs, "key"); !errors.Is(err, asynclock.ErrHeld) {
		env.Errorf("TryLock while the inner lease lasts: got %v, want ErrHeld", err)
	}
	if !inner.Valid(0) {
		env.Errorf("the inner lease: got %v, want it valid", inner.Err())
	}
	env.unlock(inner)

	err = theirs.WithLock(env.ctx, "key", func(ctx context.Context, first *asynclock.Lease) error {
		return theirs.WithLock(ctx, "key", func(_ context.Context, second *asynclock.Lease) error {
			if second.Token() != first.Token() || first.Token() <= outer.Token() {
				env.Errorf("tokens of nested WithLock: got %d and %d, want the same, larger than %d",
					first.Token(), second.Token(), outer.Token())
			}
			return nil
		}, asynclock.WithReentry(true))
	})
	if err != nil {
		env.Errorf("nested WithLock: got %v, want no error", err)
	}
}

func withLockReportsLoss(env *Env) {
	ours, operator := env.client(), env.client()
	force := func() {
		if held, err := operator.ForceUnlock(env.ctx, "key", 0); err != nil || !held {
			env.Errorf("ForceUnlock: got %v, %v, want true", held, err)
		}
	}
	var cause, err error
	for tries := 0; tries < 3 && !errors.Is(cause, asynclock.ErrForced); tries++ { // at first there may be no subscription yet
		err = ours.WithLock(env.ctx, "key", func(ctx context.Context, _ *asynclock.Lease) error {
			force()
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		})
		if env.ctx.Err() != nil {
			env.Fatal("the function's context never ended")
		}
		if !errors.Is(err, asynclock.ErrLost) {
			env.Errorf("WithLock: got %v, want ErrLost", err)
		}
	}
	if !errors.Is(cause, asynclock.ErrForced) || !errors.Is(err, asynclock.ErrForced) {
		env.mistimed("why the function's context ended: got %v, and WithLock: %v, want ErrForced", cause, err) // a renewal came before the message
	}

	broken := errors.New("broken")
	total, err := asynclock.Do(env.ctx, ours, "key", func(ctx context.Context, _ *asynclock.Lease) (int, error) {
		force()
		<-ctx.Done()
		return 7, broken
	})
	if total != 7 || !errors.Is(err, broken) || !errors.Is(err, asynclock.ErrLost) {
		env.Errorf("Do: got %d, %v, want 7, the function's error and ErrLost", total, err)
	}
	env.unlock(env.lock(operator, "key"))
}

func minHoldOutlastsUnlock(env *Env) {
	const hold = 700 * time.Millisecond
	ours, theirs := env.client(), env.client()
	start := time.Now()
	first := env.lock(ours, "job", asynclock.WithMinHold(hold))
	claimed := time.Now()
	env.unlock(first)
	for name, locks := range map[string]*asynclock.Client{"the same client": ours, "another client": theirs} {
		early, err := locks.TryLock(env.ctx, "job")
		switch {
		case errors.Is(err, asynclock.ErrHeld):
		case err != nil:
			env.Fatalf("TryLock by %s: got %v, want ErrHeld", name, err)
		case time.Since(start) < hold:
			env.Errorf("TryLock by %s right after Unlock: got a lease, want ErrHeld", name)
			fallthrough
		default: // on a machine that is too slow to tell
			env.unlock(early)
		}
	}
	local := ours.LockChan(env.ctx, "job")
	remote := theirs.LockChan(env.ctx, "job")
	for range 2 {
		lease := env.claimEither(&local, &remote)
		if took := time.Since(start); took < hold {
			env.Errorf("the next lease: came after %v, want it after %v", took, hold)
		}
		env.wantWithin(hold+heartbeat, claimed, "the next lease")
		if lease.Token() <= first.Token() {
			env.Errorf("its token: got %d, want more than %d", lease.Token(), first.Token())
		}
		env.unlock(lease)
	}
}

// minHoldEndsOnTime: with this TTL a heartbeat takes some 3 s, so nobody is early by chance.
func minHoldEndsOnTime(env *Env) {
	const hold = time.Second
	patient := asynclock.WithTTL(30 * time.Second)
	ours, theirs := env.client(patient), env.client(patient)
	start := time.Now()
	first := env.lock(ours, "job", asynclock.WithMinHold(hold))
	claimed := time.Now()
	next := theirs.LockChan(env.ctx, "job")
	env.awaitWaiters(ours, "job", 1)
	env.unlock(first)
	second := env.claim(next)
	if took := time.Since(start); took < hold {
		env.Errorf("the next lease: came after %v, want it after %v", took, hold)
	}
	env.wantWithin(hold+soon, claimed, "the next lease") // to 50 ms, in virtual time: package asynclock's tests
	env.unlock(second)
}

// secret is what an owner id looks like.
var secret = regexp.MustCompile(`[A-Za-z0-9_-]{22}\.[0-9a-f]{2}`)

func inspectAndListTell(env *Env) {
	const many = 40 // of thousands, and of pages, the tests of the stores tell
	holder := env.client(asynclock.WithDescription("the holder"))
	waiter, observer := env.client(asynclock.WithDescription("the waiter")), env.client()
	leases := make([]*asynclock.Lease, many)
	for i := range leases {
		leases[i] = env.lock(holder, fmt.Sprint("order:", i))
	}
	elsewhere := env.lock(holder, "orders are not order:*")
	waiting := waiter.LockChan(env.ctx, "order:7")
	env.awaitWaiters(observer, "order:7", 1)

	info, err := observer.Inspect(env.ctx, "order:7")
	if err != nil {
		env.Fatal(err)
	}
	switch {
	case info.Key != "order:7" || !info.Held || info.Holder != "the holder" || info.Token != leases[7].Token(),
		!env.remains(info.Remaining),
		info.Waiters != 1 || len(info.Queue) != 1 || info.Queue[0].Holder != "the waiter":
		env.Errorf("Inspect: got %+v, want the holder, its token %d, and the waiter", info, leases[7].Token())
	case info.Queue[0].Age < 0 || info.Queue[0].Age > patience:
		env.Errorf("how long the waiter has waited: got %v, want a little", info.Queue[0].Age)
	}
	if info, err := observer.Inspect(env.ctx, "nobody's"); err != nil || info.Held || info.Waiters != 0 {
		env.Errorf("Inspect of a free key: got %+v, %v, want nobody", info, err)
	}

	var keys []string
	for info, err := range observer.List(env.ctx, "order:") {
		if err != nil {
			env.Fatal(err)
		}
		if text := fmt.Sprintf("%+v", info); secret.MatchString(text) {
			env.Errorf("List: got %s, want no owner in it", text)
		}
		if !info.Held || info.Holder != "the holder" {
			env.Errorf("List: got %+v, want it held by the holder", info)
		}
		keys = append(keys, info.Key)
	}
	slices.Sort(keys)
	if got := len(slices.Compact(keys)); got != many {
		env.Errorf("List: got %d keys, want %d", got, many)
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, "order:") {
			env.Errorf("List: got %q, want the prefix \"order:\"", key)
		}
	}
	if text := fmt.Sprintf("%+v", info); secret.MatchString(text) {
		env.Errorf("Inspect: got %s, want no owner in it", text)
	}

	env.unlock(elsewhere)
	for _, l := range leases {
		env.unlock(l)
	}
	env.unlock(env.claim(waiting))
}

func hostileKeysAreKeys(env *Env) {
	keys := []string{
		" ", "*", "?", "[a-z]", `\`, "%", "%7B", "%25", "{", "}", "{}", "{}x}", "}{", "{a}{b}", "{b00}", "a b",
		":", ":l", "key", "key:l", "key:q", "key:l:l", "b:c:l", "'", `"`, "`", "$(id)", "-", "0", "nil", "..", "/",
		"\r\nFLUSHALL\r\n", "\x00", "\x1b[31m", "\x7f", "ключ", "🔒", "é", "e\u0301", "\u202e",
		strings.Repeat("x", asynclock.MaxKeyLen), strings.Repeat("{", asynclock.MaxKeyLen),
		strings.Repeat("ü", asynclock.MaxKeyLen/2),
	}
	ours, theirs := env.client(), env.client()
	leases := make(map[string]*asynclock.Lease)
	for _, key := range keys {
		leases[key] = env.lock(ours, key) // at once, or no other key would be this one
	}
	listed := make(map[string]bool)
	for info, err := range theirs.List(env.ctx, "") {
		if err != nil {
			env.Fatal(err)
		}
		listed[info.Key] = true
	}
	if len(listed) != len(keys) {
		env.Errorf("List: got %d keys, want %d", len(listed), len(keys))
	}
	for _, key := range keys {
		if !listed[key] {
			env.Errorf("List: %q is not in it", key)
		}
		var held *asynclock.HeldError
		if _, err := env.tryLock(theirs, key); !errors.As(err, &held) || held.Key != key || held.Token != leases[key].Token() {
			env.Errorf("TryLock(%q) by another: got %v, want it held with token %d", key, err, leases[key].Token())
		}
		pending := theirs.LockChan(env.ctx, key)
		env.unlock(leases[key])
		lease := env.claim(pending)
		if lease.Key() != key {
			env.Errorf("key of the lease: got %q, want %q", lease.Key(), key)
		}
		env.unlock(lease)
	}

	for _, key := range []string{"", strings.Repeat("x", asynclock.MaxKeyLen+1), "\xff", "a\xc3"} {
		if _, err := ours.Lock(env.ctx, key); !errors.Is(err, asynclock.ErrInvalidKey) {
			env.Errorf("Lock(%.20q): got %v, want ErrInvalidKey", key, err)
		}
		if _, err := ours.Inspect(env.ctx, key); !errors.Is(err, asynclock.ErrInvalidKey) {
			env.Errorf("Inspect(%.20q): got %v, want ErrInvalidKey", key, err)
		}
	}
}
