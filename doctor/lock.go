// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// lockTime bounds the check of a lock.
const lockTime = 3 * time.Second

// lock takes a scratch key, renews it and gives it back.
func (x *examination) lock(ctx context.Context) {
	if !x.alive {
		return
	}
	limited, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	o := x.newOwner(x.session, scratchKey(), x.scratchTTL())
	defer o.end(ctx)
	x.lockBy(limited, o)
}

// take requests a scratch key. A store of sessions may refuse a TTL that is shorter than that of the clients. It has no
// grace, so the long one holds up nobody there.
func (x *examination) take(ctx context.Context, o *owner) store.AcquireReply {
	reply := o.ask(ctx, false)
	if errors.Is(reply.Err, store.ErrInvalidOption) && o.request.TTL < x.settings.ttl && x.st.Features().Sessions {
		o.setTTL(x.settings.ttl)
		reply = o.ask(ctx, false)
	}
	return reply
}

func (x *examination) lockBy(ctx context.Context, o *owner) {
	began := time.Now()
	reply := x.take(ctx, o)
	taken := time.Now()
	switch {
	case errors.Is(reply.Err, store.ErrGrace):
		x.report("lock", Warn, graceFact(reply.Err), remedy(reply.Err))
		return
	case reply.Err != nil:
		x.fail("lock", Fail, "a key can't be taken", reply.Err)
		return
	case reply.Status != store.Granted:
		x.report("lock", Fail, "a key that nobody else knows is refused", foreignerFix)
		return
	}
	if err := o.renew(ctx); err != nil {
		x.fail("lock", Fail, "a key can be taken and not renewed", err)
		return
	}
	renewed := time.Now()
	released := o.release(ctx)
	if err := errors.Join(released.Err, released.Cause); err != nil {
		x.fail("lock", Fail, "a key can be taken and not given back", err)
		return
	}
	x.takes = o.request.TTL
	fact := fmt.Sprintf("a key is taken in %s, renewed in %s and given back in %s",
		short(taken.Sub(began)), short(renewed.Sub(taken)), short(time.Since(renewed)))
	if least := o.request.TTL * 9 / 10; reply.TTL > 0 && reply.TTL < least { // what remains of a session is a little less
		x.report("lock", Note, fact+", but the store makes its TTL of "+short(o.request.TTL)+" one of "+short(reply.TTL), "")
		return
	}
	x.report("lock", OK, fact, "")
}
