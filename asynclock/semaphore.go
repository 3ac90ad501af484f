// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"fmt"

	"github.com/asynclock/asynclock-go/store"
)

// A Semaphore is a number of permits under one key. It limits how many use a resource at the same time,
// in all processes. The permits are in the store: all Semaphores of a key are one, also in the same process,
// and none needs to be closed.
//
// A request takes one permit or several. Clients are served in the order in which they queued. A request
// that does not fit blocks all behind it, so smaller ones don't starve a large one. Inside a client, a
// permit that is given back goes to the client's first waiter without a round trip. While another client
// waits, that is bounded as with [Client.Lock]: 128 times, or 10 ms.
//
// Permits are renewed like any lease. Those of a process that has died are free after its TTL.
//
// The key may also be locked. [Client.Lock] waits for all permits, and then nobody has one. ForceUnlock of
// the key ends the leases of all permits.
//
// A client does some work for each of its leases with every request of the same key. Many thousands of
// permits of one key in one client are slow. Take many at once instead.
type Semaphore struct {
	client   *Client
	key      string
	settings lockSettings
}

// MaxPermits is the largest number of permits of a [Semaphore].
const MaxPermits = store.MaxPermits

// Semaphore returns the semaphore of the key, with so many permits: from 1 to [MaxPermits]. The options
// are the defaults of its requests. Nothing is requested from the store.
//
// All processes should give the same number. Where they do not, as while a new version is rolled out, the
// smallest number counts of those who have permits and of the one who asks. So as long as a process has
// permits, no more are out than it believes. [Semaphore.SetPermits] overrides all numbers, except that no
// request asks for more than the number here.
//
// Of the options, [WithRetention] has no effect. [WithMinHold] keeps permits back after an early Unlock,
// so n permits with a minimum hold of d start at most n uses per d. Permits pass from one waiter of a client
// to the next only between equal numbers and options, and never with WithMinHold, [WithMaxHold] or without
// renewal. A client requests such permits one after the other: one request, one round trip. There is an exception. One request
// serves all who wait for the same WithMaxHold, and for the same WithMinHold up to a tenth of the TTL and 3 s. They may not
// be futures.
//
// Errors: [ErrInvalidKey], [ErrInvalidOption], [ErrClosed], and [ErrUnsupported] from a store that has no
// permits ([store.Features]).
func (c *Client) Semaphore(key string, permits int, options ...LockOption) (*Semaphore, error) {
	s, err := c.semaphore(key, permits, options)
	if err != nil {
		return nil, &Error{"semaphore", key, err}
	}
	return s, nil
}

func (c *Client) semaphore(key string, permits int, options []LockOption) (*Semaphore, error) {
	if err := c.checkCall(context.Background(), key); err != nil {
		return nil, err
	}
	if permits < 1 || permits > MaxPermits {
		return nil, fmt.Errorf("%w: %d permits, from 1 to %d are allowed", ErrInvalidOption, permits, MaxPermits)
	}
	if err := c.features.Check(store.Share{Mode: Permits, Weight: 1, Limit: 1}, 0); err != nil {
		return nil, err
	}
	defaults := c.settings.lock
	defaults.Mode, defaults.Limit = Permits, int32(permits)
	settings, err := defaults.with(options)
	if err != nil {
		return nil, err
	}
	settings.given = 0
	settings.Retention = 0
	return &Semaphore{client: c, key: key, settings: settings}, nil
}

// Key returns the key.
func (s *Semaphore) Key() string {
	if s == nil {
		return ""
	}
	return s.key
}

// Acquire takes n permits, and waits for them as long as ctx lasts, or as long as [WithWait] says. The
// lease has all of them, and [Lease.Unlock] gives all back. A caller that has permits and asks for more may
// wait for ever, like two that wait for each other: take at once what you need. That is so also under a lease of
// permits, because no request joins them.
//
// Errors: those of [Client.Lock], and
//   - [ErrPermits]: there are fewer than n.
//   - [ErrUpgrade]: ctx was made under a lease of [Client.Lock] or [Client.RLock] of the same key.
func (s *Semaphore) Acquire(ctx context.Context, n int, options ...LockOption) (*Lease, error) {
	return s.acquire(newWaiter(ctx), "acquire", n, options)
}

// TryAcquire is [Semaphore.Acquire] without waiting. If fewer than n permits are free, or anybody is
// ahead in the queue, the error is [ErrHeld], as a [*HeldError] that says how many are taken. The other
// errors are those of Acquire.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, options ...LockOption) (*Lease, error) {
	w := newWaiter(ctx)
	w.Try = true
	return s.acquire(w, "try acquire", n, options)
}

// AcquireChan is [Semaphore.Acquire] as a future. All that [Client.LockChan] says holds for it.
func (s *Semaphore) AcquireChan(ctx context.Context, n int, options ...LockOption) <-chan Result {
	w := newWaiter(ctx)
	if err := s.prepare(w, n); err != nil {
		w.result = make(chan Result, 1)
		s.ofClient().refuse(w, s.Key(), err)
		return w.result
	}
	return s.client.future(w, s.key, options)
}

// With is [Client.WithLock] for n permits.
func (s *Semaphore) With(
	ctx context.Context, n int, fn func(ctx context.Context, lease *Lease) error, options ...LockOption,
) error {
	if fn == nil {
		return &Error{"acquire", s.Key(), errNilFunction}
	}
	lease, err := s.Acquire(ctx, n, options...)
	if err != nil {
		return err
	}
	_, err = underLease(ctx, lease, noValue(fn))
	return err
}

// SetPermits sets the number of permits in the store, for all processes and whatever they believe, until
// it is set again. With 0 the store forgets the number, and that of each process counts again.
//
// A larger number serves waiters, which the store notifies. A smaller one takes nothing from anyone: nothing
// is granted until enough was given back. A client that has permits learns of it by a notification. If that
// is lost, it learns by its next renewal, within five seconds, and may pass permits on until then. A waiter
// that wants more than there are fails with [ErrPermits].
//
// [Client.Inspect] shows the number as [Info].StoredLimit. No request gets more permits than its own process
// believes there are. The number is data. A store in Redis that loses its data loses it too.
//
// Errors: ctx's own, [ErrUnreachable], [ErrOutcomeUnknown], [ErrClosed], [ErrInvalidOption] below 0 or above
// [MaxPermits], [ErrForeignData], [ErrDenied], and [ErrUnsupported] from a store that can't keep the number.
// The call can be repeated.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error {
	if s.isNone() {
		return &Error{"set permits", s.Key(), errNoSemaphore}
	}
	if err := s.setPermits(ctx, n); err != nil {
		return &Error{"set permits", s.key, err}
	}
	return nil
}

func (s *Semaphore) setPermits(ctx context.Context, n int) error {
	c := s.client
	if err := c.checkCall(ctx, s.key); err != nil {
		return err
	}
	if err := c.features.CheckLimit(int32(max(min(n, MaxPermits+1), -1))); err != nil {
		return err
	}
	session, ok := c.session.(store.LimitSession)
	if !ok {
		return fmt.Errorf("%w: limits of permits", ErrUnsupported)
	}
	return session.SetLimit(ctx, s.key, int32(n))
}

// ofClient returns the semaphore's client, or nil.
func (s *Semaphore) ofClient() *Client {
	if s == nil {
		return nil
	}
	return s.client
}

// isNone reports whether s is no semaphore that a client has made.
func (s *Semaphore) isNone() bool { return s.ofClient() == nil }

var errNoSemaphore = fmt.Errorf("%w: not a semaphore of Client.Semaphore", ErrInvalidOption)

// acquire implements the calls that return a lease.
func (s *Semaphore) acquire(w *waiter, op string, n int, options []LockOption) (*Lease, error) {
	if err := s.prepare(w, n); err != nil {
		s.ofClient().countFailed(w, s.Key(), err)
		return nil, &Error{op, s.Key(), err}
	}
	return s.client.lock(w, op, s.key, options)
}

// prepare makes w a waiter for n permits.
func (s *Semaphore) prepare(w *waiter, n int) error {
	w.mode, w.semaphore = Permits, s
	switch {
	case s.isNone():
		return errNoSemaphore
	case n < 1:
		return fmt.Errorf("%w: a request for %d permits", ErrInvalidOption, n)
	case n > int(s.settings.Limit):
		return fmt.Errorf("%w: %d are wanted of the %d that this semaphore was made with", ErrPermits, n, s.settings.Limit)
	}
	w.Weight = int32(n)
	return nil
}
