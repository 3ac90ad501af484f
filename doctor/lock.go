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

// lock takes a scratch key, renews it and gives it back. The TTL is that of the clients, because a store may refuse or
// shorten it.
func (x *examination) lock(ctx context.Context) {
	if !x.alive {
		return
	}
	limited, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	o := x.newOwner(x.session, scratchKey(), x.settings.ttl)
	defer o.end(ctx)
	x.lockBy(limited, o)
}

func (x *examination) lockBy(ctx context.Context, o *owner) {
	began := time.Now()
	reply := o.ask(ctx, false)
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
	x.takes = true
	fact := fmt.Sprintf("a key is taken in %s, renewed in %s and given back in %s",
		short(taken.Sub(began)), short(renewed.Sub(taken)), short(time.Since(renewed)))
	if least := x.settings.ttl * 9 / 10; reply.TTL > 0 && reply.TTL < least { // what remains of a session is a little less
		x.report("lock", Note, fact+", but the store makes its TTL of "+short(x.settings.ttl)+" one of "+short(reply.TTL), "")
		return
	}
	x.report("lock", OK, fact, "")
}
