// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Renewals go one call at a time in a lane, except for late ones. A caller that takes a lock
// meanwhile waits for the current call. With a second call behind the first, it would wait twice as long.
// With 64 leases in a call a round would take 0.6 of the time, and the caller would wait 2.3 times as long.
const (
	gentle       = 16                     // the most that one call carries while they are on time
	lessGentle   = 64                     // likewise, of a store that is not nearby
	nearby       = time.Millisecond       // how long a small call to a nearby store takes at most
	lateRenewals = 512                    // the most that one call carries
	gathering    = 300 * time.Microsecond // the watchdog also delivers renewals one by one
)

// sendRenewals sends a batch of the watchdog's renewals. It uses small calls, unless they would
// make renewals late, for example if the store is far away.
//
// Those of a long TTL count as late when those of the usual one would. Others may wait behind them.
func (c *Client) sendRenewals(lane int, calls []*machine.Renewal) {
	most := gentle
	for len(calls) > 0 {
		n, begun := len(calls), watchdog.Now()
		if first := calls[0]; begun.Sub(first.Sent) < min(first.Request.TTL, DefaultTTL)/15 {
			n = min(n, most)
		}
		c.sendRenewalsAtOnce(lane, calls[:n])
		calls = calls[n:]
		if watchdog.Now().Sub(begun) > nearby {
			most = lessGentle
		}
	}
}

// sendRenewalsAtOnce sends one call. If the answer takes longer than the timeout, the lane goes on
// to its next call, and this one stays under way for up to the TTL that it sets. The store may carry it
// out, and then its answer counts, however late it comes.
func (c *Client) sendRenewalsAtOnce(lane int, calls []*machine.Renewal) {
	requests := make([]store.RenewRequest, len(calls))
	timeout, useful := calls[0].Timeout, time.Duration(0)
	now := watchdog.Now()
	c.renewalCalls.Add(1)
	for i, call := range calls {
		call.Sent = now
		requests[i] = call.Request
		timeout, useful = min(timeout, call.Timeout), max(useful, call.Request.TTL)
	}
	ctx, cancel := context.WithTimeout(c.background, max(useful, timeout)) // after the TTL an answer is of no use
	answered, goesOn := make(chan struct{}), make(chan bool, 1)
	// The goroutine ends with the call. Close waits for it.
	c.overdue.flying.Go(func() {
		defer cancel()
		replies := c.session.Renew(ctx, requests)
		onRenew(c.background, calls, replies)
		c.hooks.called("renew", now, false, len(replies), func(i int) error { return replies[i].Err })
		close(answered)
		if <-goesOn {
			c.overdue.leave(lane)
		}
	})
	prompt := time.NewTimer(timeout)
	defer prompt.Stop()
	select {
	case <-answered:
		goesOn <- false
		return
	case <-prompt.C:
	}
	late := c.overdue.enter(lane)
	goesOn <- late
	if !late {
		cancel() // enough of them are under way
		<-answered
		return
	}
	for _, call := range calls {
		renewalIsLate(call)
	}
}

// renewNow sends renewals of one lane in one call, on their caller's own goroutine, and returns an error or nil for
// each.
func (c *Client) renewNow(ctx context.Context, byCaller bool, calls []*machine.Renewal) []error {
	requests, errs := make([]store.RenewRequest, len(calls)), make([]error, len(calls))
	timeout := calls[0].Timeout
	now := watchdog.Now()
	c.renewalCalls.Add(1)
	for i, call := range calls {
		call.Sent = now
		requests[i] = call.Request
		timeout = max(timeout, call.Timeout)
	}
	callCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	replies := c.session.Renew(callCtx, requests)
	onRenew(ctx, calls, replies)
	for i := range replies {
		errs[i] = replies[i].Err
	}
	c.hooks.called("renew", now, byCaller, len(errs), func(i int) error { return errs[i] })
	return errs
}

// renewalIsLate counts a renewal as failed for now.
func renewalIsLate(r *machine.Renewal) {
	s := stateOf(r.Key)
	s.shard.client.heard(r.Key.Name, ErrOutcomeUnknown)
	st := s.begin()
	defer s.end(&st)
	s.machine.RenewalIsLate(r, &st)
}

// onRenew handles the answers to the renewals of a call, those of a key together.
func onRenew(caller context.Context, calls []*machine.Renewal, replies []store.RenewReply) {
	for len(replies) > 0 {
		s, n := stateOf(calls[0].Key), 0
		for ; n < min(len(replies), lessGentle) && calls[n].Key == calls[0].Key; n++ { // other callers wait for the step
			r, err := calls[n], ourTimeout(caller, replies[n].Err)
			replies[n].Err = err
			if !failure.Transient(err) || watchdog.Now().Sub(r.Sent) < r.Timeout { // or else it was late, and has been counted
				s.shard.client.heard(r.Key.Name, err)
			}
		}
		s.renewed(calls[:n], replies[:n])
		calls, replies = calls[n:], replies[n:]
	}
}

func (s *keyState) renewed(calls []*machine.Renewal, replies []store.RenewReply) {
	st := s.begin()
	defer s.end(&st)
	s.machine.Renewed(calls, replies, &st)
}
