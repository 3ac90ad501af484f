// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// scratchTTL returns the TTL of scratch keys: that of the clients, as stores may refuse a short one, but at most the default.
// A store may grant nothing for the longest TTL that it knows, as that of Redis does after a failover, and so a
// scratch key with a long one would hold up others.
func (x *examination) scratchTTL() time.Duration { return min(x.settings.ttl, store.DefaultTTL) }

// An owner takes a scratch key.
type owner struct {
	session store.Session
	request store.AcquireRequest
	token   int64

	inStore   bool // a request was answered, so it may hold the key or be in the queue, also if the store denies that
	uncertain bool // a request had no answer
}

// newOwner returns an owner that has asked for nothing yet.
func (x *examination) newOwner(session store.Session, key string, ttl time.Duration) *owner {
	o := &owner{session: session, request: store.AcquireRequest{
		Key: key, Owner: uuid.NewString(), NotifyRequests: x.st.Features().Retention, Description: "asynclock doctor",
	}}
	o.setTTL(ttl)
	return o
}

func (o *owner) setTTL(ttl time.Duration) {
	o.request.TTL, o.request.GrantTTL, o.request.WaiterTTL = ttl, ttl, ttl
}

// ask requests the key, and joins its queue if that is wanted.
func (o *owner) ask(ctx context.Context, wait bool) store.AcquireReply {
	o.request.Wait = wait
	reply := o.session.Acquire(ctx, []store.AcquireRequest{o.request})[0]
	o.noted(reply.Err)
	if reply.Err == nil {
		o.inStore = true
		o.token, o.request.Ticket = max(o.token, reply.Token), max(o.request.Ticket, reply.Ticket)
	}
	return reply
}

func (o *owner) renew(ctx context.Context) error {
	r := store.RenewRequest{
		Key: o.request.Key, Owner: o.request.Owner, TTL: o.request.TTL, Token: o.token, Description: o.request.Description,
	}
	return o.session.Renew(ctx, []store.RenewRequest{r})[0].Err
}

func (o *owner) release(ctx context.Context) store.ReleaseReply {
	r := store.ReleaseRequest{Key: o.request.Key, Owner: o.request.Owner, Token: o.token, Uncertain: o.uncertain}
	reply := o.session.Release(ctx, []store.ReleaseRequest{r})[0]
	o.noted(reply.Err)
	if reply.Err == nil {
		o.inStore, o.uncertain = false, false
	}
	return reply
}

// noted remembers whether a request may have taken effect although its answer is an error.
func (o *owner) noted(err error) {
	if errors.Is(err, store.ErrOutcomeUnknown) || isEndOfContext(err) {
		o.uncertain = true
	}
}

// end gives back what the owner may have, also if ctx has ended. If that is not possible, the TTL ends it.
func (o *owner) end(ctx context.Context) {
	if !o.inStore && !o.uncertain {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	o.release(ctx)
}
