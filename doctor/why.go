// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

const (
	leastWatch = 2 * time.Second        // for a renewal or a handoff to be seen
	mostWatch  = 9 * time.Second        // enough to see whether a holder with the default TTL renews
	lateness   = time.Second            // of a renewal, at the most, usually
	watchPause = 250 * time.Millisecond // between two looks
)

// Why finds out why a wait for the key takes long. Its findings are, as far as they apply, in this order:
//
//   - "answers": Fail: it does not answer.
//   - "key": Fail: what is stored under it is foreign data, so nobody can lock it. OK: nobody holds it and nobody waits.
//     Note: nobody holds it although some wait, which lasts for a moment or until the first of them is found to be dead.
//   - "holder": who holds the key, with which token, and for how long without a renewal. OK if nobody waits, and
//     otherwise Note.
//   - "renewals": what changes within the time in which a client with the default TTL renews, nine seconds at most. Note: the
//     holder has renewed, or has not yet, or the key has changed hands. Warn: no renewal came although one was due and
//     others wait, or the key is held without a TTL.
//   - "queue": Note: how many wait, who is the first, and for how long.
//   - "grace": Warn: the server grants the key to nobody yet, as after a restart or a failover. Note: it will, for a while from
//     the next request on; or it could not be found out, for example because a user may not see it.
//
// Why only looks, and takes no key. It takes ten seconds or so at most. If the server is silent, it takes five.
//
// The error is [store.ErrInvalidKey] for a key that no store would take, and otherwise as in [Check].
func Why(ctx context.Context, st store.Store, key string, opts ...Option) ([]Finding, error) {
	x, err := prepare(ctx, st, opts)
	if err != nil {
		return nil, err
	}
	if key == "" || len(key) > store.MaxKeyLen || !utf8.ValidString(key) {
		return nil, fmt.Errorf("%w: it has to be UTF-8 of 1 to %d bytes", store.ErrInvalidKey, store.MaxKeyLen)
	}
	if err := x.open(); err != nil || x.session == nil {
		return x.findings, err
	}
	defer x.close(ctx)
	w := wait{examination: x, key: key}
	if s, ok := x.session.(store.SpellingSession); ok {
		w.key = s.Spell(key)
	}
	findings, err := x.all(ctx, w.standing, w.grace)
	if errors.Is(w.invalid, store.ErrInvalidKey) { // a store may have its own rules
		return nil, w.invalid
	}
	return findings, err
}

// A wait is an examination of one key.
type wait struct {
	*examination

	key     string
	invalid error
}

// standing says how the key stands.
func (w *wait) standing(ctx context.Context) {
	info, err := w.look(ctx)
	if err != nil {
		w.unknown(err)
		return
	}
	if !info.Held && info.Waiters == 0 {
		w.report("key", OK, "nobody holds it, and nobody waits for it", "")
		return
	}
	change, err := w.watch(ctx, info)
	if err != nil {
		w.unknown(err)
		return
	}
	if info.Held {
		w.holder(&info, &change)
		w.renewals(&info, &change)
	} else {
		w.heldByNobody(&change)
	}
	w.queue(&change.after)
}

// unknown reports that nothing is known of the key.
func (w *wait) unknown(err error) {
	switch {
	case errors.Is(err, store.ErrInvalidKey):
		w.invalid, w.alive = err, false
	case errors.Is(err, store.ErrForeignData):
		w.fail("key", Fail, "nobody can lock it", err)
	default:
		w.fail("answers", Fail, "the key can't be inspected", err)
	}
}

func (w *wait) look(ctx context.Context) (store.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return w.session.Inspect(ctx, w.key)
}

// A change is what has become of a key between two looks.
type change struct {
	after   store.Info
	elapsed time.Duration
	renewed bool // the rest of the TTL is longer than it would be otherwise
	passed  bool // it has another holder, or none, or had none; or nobody waits any more for what nobody holds
	passes  int  // how often that was seen
	expired bool // it was not renewed to its end
}

// notable is how much longer the rest of a TTL has to be than expected. Two looks take a moment.
const notable = 100 * time.Millisecond

// dueIn returns the time within which the holder has to renew if it renews at all. A client of this library does so each third
// of the TTL, so at least two thirds of that are left, and half of what is left is a third or more.
func dueIn(info *store.Info) time.Duration { return info.Remaining/2 + lateness }

// watch looks until something has changed, or should have. Where a key is passed on, it counts for a while how often.
func (w *wait) watch(ctx context.Context, before store.Info) (c change, err error) {
	limit := leastWatch
	if before.Held {
		limit = min(max(limit, dueIn(&before)), mostWatch)
	}
	last, lastAt := before, time.Duration(0)
	for began := time.Now(); !c.isAll(&before, limit); {
		if err := pause(ctx, watchPause); err != nil {
			return c, err
		}
		sent := time.Since(began) // a late reply must not look like a renewal
		if c.after, err = w.look(ctx); err != nil {
			return c, err
		}
		c.elapsed = time.Since(began)
		if hasPassed(&last, &c.after) {
			c.passes++
			c.expired = c.passes == 1 && last.Held && last.Remaining >= 0 && last.Remaining <= c.elapsed-lastAt && before.Remaining >= time.Second
		}
		c.passed = c.passes > 0
		c.renewed = !c.passed && before.Held && before.Remaining >= 0 && c.after.Remaining-(before.Remaining-sent) > notable
		last, lastAt = c.after, sent
	}
	return c, nil
}

// isAll reports whether the watch may end.
func (c *change) isAll(before *store.Info, limit time.Duration) bool {
	if c.passed && before.Held && c.after.Held && before.Mode == store.Exclusive {
		return c.elapsed >= leastWatch // how often it passes is counted
	}
	return c.passed || c.renewed || c.elapsed >= limit
}

func hasPassed(before, after *store.Info) bool {
	if !before.Held && after.Waiters == 0 {
		return true
	}
	return after.Held != before.Held || after.Token != before.Token || after.Holder != before.Holder
}

// grace finds out whether the server grants the key to nobody yet.
func (w *wait) grace(ctx context.Context) {
	session, ok := w.session.(store.GraceSession)
	if !ok || !w.alive {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	switch left, begun, err := session.Grace(ctx, w.key); {
	case err != nil:
		w.fail("grace", Note, "it is not known whether the server grants the key at present", err)
	case left > 0 && !begun:
		w.report("grace", Note, "the server was started or promoted lately, and nobody has requested a key of this part of it since: the first request waits for "+short(left), "")
	case left > 0:
		err := &store.GraceError{Remaining: left}
		w.report("grace", Warn, graceFact(err)+". That is so also if the key is given back or taken by force", remedy(err))
	}
}
