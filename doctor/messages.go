// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

const (
	registerTime  = 3 * time.Second        // for a waiter to be one that is told
	registerPause = 100 * time.Millisecond // between its requests
	promisedTime  = 2 * time.Second        // for a message that the store has promised
	unsureTime    = time.Second            // for one that it has not
	askTime       = 2 * time.Second        // for each other request
	handoffTTL    = 10 * time.Second       // of the scratch key, at least: longer than all of that
)

const messagesFix = "if the store has messages, look at what is between this machine and the server: proxies, and poolers that share connections between " +
	"transactions, lose messages; in Redis the user needs the right to the channels &asynclock:*"

// messages finds out whether a waiter is told of a release.
func (x *examination) messages(ctx context.Context) {
	if !x.alive {
		return
	}
	if x.takes == 0 {
		x.report("messages", Note, "not tried, because no key could be taken", "")
		return
	}
	inbox := make(chan store.Event, 64) // a waiter has a few events at most
	session, err := x.st.Open(uuid.NewString(), func(e store.Event) {
		select {
		case inbox <- e:
		default:
		}
	})
	if err != nil {
		x.fail("messages", Warn, "a second client can't be opened", err)
		return
	}
	defer end(ctx, session)
	key, ttl := scratchKey(), max(x.takes, handoffTTL)
	h := &handoff{holder: x.newOwner(x.session, key, ttl), waiter: x.newOwner(session, key, ttl), inbox: inbox}
	defer h.waiter.end(ctx)
	defer h.holder.end(ctx)
	if err := h.run(ctx); err != nil {
		x.fail("messages", Warn, "a key could not be passed to a waiter", err)
		return
	}
	x.judge(h)
}

// A handoff passes a scratch key from a holder to a waiter.
type handoff struct {
	holder, waiter *owner
	inbox          <-chan store.Event // of the waiter's session

	promised bool          // the store said that it would tell the waiter
	told     bool          // it has told the waiter
	after    time.Duration // told: since the release was sent
	served   bool          // not told: the waiter has the key, as it found out by asking
}

var errRefused = errors.New("a scratch key was refused, or granted to two")

// run passes the key on. An error says that this was not possible.
func (h *handoff) run(ctx context.Context) error {
	if reply := within(ctx, askTime, h.holder.take); reply.Err != nil {
		return reply.Err
	} else if reply.Status != store.Granted {
		return errRefused
	}
	if err := h.register(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := within(ctx, askTime, h.holder.release).Err; err != nil {
		return err
	}
	if h.told = h.await(ctx); h.told {
		h.after = time.Since(began)
		return nil
	}
	reply := within(ctx, askTime, h.waiter.queue)
	h.served = reply.Status == store.Granted
	return reply.Err
}

// register lets the waiter queue, and asks again until it is one that will be told of a release. That takes a moment if
// its subscription is new.
func (h *handoff) register(ctx context.Context) error {
	for began := time.Now(); ; {
		reply := within(ctx, askTime, h.waiter.queue)
		switch {
		case reply.Err != nil:
			return reply.Err
		case reply.Status != store.Waiting:
			return errRefused
		case reply.WillNotify, reply.Recheck == 0:
			h.promised = true
			return nil
		case time.Since(began) > registerTime:
			return nil
		}
		if err := pause(ctx, registerPause); err != nil {
			return err
		}
	}
}

// await reports whether the waiter is told.
func (h *handoff) await(ctx context.Context) bool {
	limit := unsureTime
	if h.promised {
		limit = promisedTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		select {
		case e := <-h.inbox:
			if e.Owner == h.waiter.request.Owner && (e.Kind == store.EventGrant || e.Kind == store.EventWake) {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// judge reports what came of a handoff.
func (x *examination) judge(h *handoff) {
	switch {
	case h.told:
		x.report("messages", OK, "a waiter was told of a release after "+short(h.after), "")
	case !h.served:
		x.report("messages", Fail, "a key was given back, and its waiter did not get it, not even by asking", "look at the log of the server")
	case h.promised:
		x.report("messages", Warn, fmt.Sprintf("the store was to tell a waiter of a release, and no message came within %s; "+
			"the waiter got the key by asking", short(promisedTime)), messagesFix)
	case x.st.Features().Retention: // a store that tells holders of requests
		x.report("messages", Warn, "messages don't reach this client, so waiters poll", messagesFix)
	default:
		x.report("messages", Note, "waiters poll: this store tells them of no release, or no message came", "")
	}
}

func (o *owner) take(ctx context.Context) store.AcquireReply  { return o.ask(ctx, false) }
func (o *owner) queue(ctx context.Context) store.AcquireReply { return o.ask(ctx, true) }

// within makes one request that ends in time.
func within[R any](ctx context.Context, limit time.Duration, request func(context.Context) R) R {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return request(ctx)
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
