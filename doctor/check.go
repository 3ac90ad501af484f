// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// How long the checks of a [store.CheckedStore] may take.
const (
	storeTime      = 10 * time.Second
	storeTimeAlone = 4 * time.Second // of a server that has not answered
)

// Check finds out whether the store is fit for locks. Its findings are, in this order:
//
//   - "answers": whether it answers, and how fast. Fail: it does not, or denies it. Warn: it is so slow that renewals
//     may come late, or it failed after some answers, or it was silent for a second or longer before it answered fast.
//     Note: it is slow for moments.
//   - "lock": a scratch key is taken, renewed and given back. Fail: that is not possible. Warn: the server grants
//     nothing yet, as after a restart or a failover. Note: the store shortens the TTL.
//   - "messages": a waiter is told of a release. Note: the store does not tell, so waiters poll. Warn: the store could
//     tell, and its message did not come. Fail: a key that was given back did not reach its waiter at all.
//   - those of the store itself, if it is a [store.CheckedStore], by their names there.
//   - "locks": how many keys are held, and the longest queue. Note: more than 100 wait for a key, or it is not permitted
//     to list. Warn: foreign data, or keys without a TTL.
//
// If the server does not answer, only "answers" and the findings of the store itself are there. Check then takes at most
// ten seconds, and otherwise at most half a minute, usually two seconds and the time of the store's own checks.
//
// The error is [store.ErrInvalidOption] for a nil store, for one that no function of its package has made, or for a bad
// option. It is that of ctx if ctx ended before all was checked; the findings until then come with it. Otherwise it is
// nil, whatever is found.
func Check(ctx context.Context, st store.Store, opts ...Option) ([]Finding, error) {
	x, err := prepare(ctx, st, opts)
	if err != nil {
		return nil, err
	}
	if err := x.open(); err != nil || x.session == nil {
		return x.findings, err
	}
	defer x.close(ctx)
	return x.all(ctx, x.server, x.lock, x.messages, x.ofStore, x.locks)
}

// ofStore adds the findings of the store itself.
func (x *examination) ofStore(ctx context.Context) {
	checked, ok := x.st.(store.CheckedStore)
	if !ok {
		return
	}
	limit := storeTime
	if !x.alive {
		limit = storeTimeAlone
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	checked.Check(ctx, x.add)
	if ctx.Err() != nil {
		x.report("store", Warn, "the checks of the store itself did not end within "+short(limit),
			"see the findings before this one for what is slow, and repeat this")
	}
}
