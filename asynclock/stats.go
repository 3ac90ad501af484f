// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Stats are a client's counts since [New], and what is so now. They can be compared, and written as JSON:
//
//	expvar.Publish("asynclock", expvar.Func(func() any { return locks.Stats() }))
type Stats struct {
	Store string `json:"store"` // what the store is in: redis, spring-redis, postgres, mysql, zookeeper, memory and so on

	Exclusive Acquisitions `json:"exclusive"` // of one key for the caller alone
	Readers   Acquisitions `json:"readers"`
	Permits   Acquisitions `json:"permits"` // of a [Semaphore], however many permits each has
	Several   Acquisitions `json:"several"` // of several keys: each [MultiLease] counts once, and its parts nowhere

	Renewals Renewals `json:"renewals"`
	Releases Releases `json:"releases"`
	Keys     Keys     `json:"keys"`

	// LeastTrust shows how close a loss was: how much of the time to the trust deadline was left when a renewal was
	// answered, at the least, in the last 15 to 30 s. It is about 0.65 if all is well. At 0 a lease is lost. It is 1 if
	// nothing was renewed.
	LeastTrust float64 `json:"least_trust"`
	// Failing: nothing but failures has come from the store, or from a part of it, and the latest of them in the last 10 s.
	Failing bool `json:"failing"`
	// Deaf: the notifications of the store, or of a part of it, don't come through. Waiters ask instead, which is slower.
	Deaf bool `json:"deaf"`
	// HooksLeftOut is how many calls of [Hooks] were left out, because the hooks are slow.
	HooksLeftOut int64 `json:"hooks_left_out"`
}

// Acquisitions counts the requests of one kind, and what came of them. At any time
//
//	Requested = Acquired.Sum() + Refused.Sum() + GivenUp.Sum() + Waiting
//	Acquired.Sum() = Ended.Sum() + Held
//
// A [Lease.Downgrade] is a reader's request, too. A call whose context had ended before is none.
type Acquisitions struct {
	Requested int64    `json:"requested"`
	Acquired  Acquired `json:"acquired"`
	Refused   Refused  `json:"refused"`
	GivenUp   GivenUp  `json:"given_up"`
	Ended     Ended    `json:"ended"`

	// Waiting is how many callers in this client wait now. Each pending future is one. It is no figure of the store's
	// queue, in which a client has one place for a key: see [Keys] and [HeldError].
	Waiting int64 `json:"waiting"`
	Held    int64 `json:"held"` // leases that last now
}

// Acquired counts leases by the way they came.
type Acquired struct {
	AtOnce     int64 `json:"at_once"`    // the store granted the key, and nobody was in the way
	Queued     int64 `json:"queued"`     // the store granted it after others; of several keys: any of them
	Local      int64 `json:"local"`      // it was passed on inside the client, without the store
	Retained   int64 `json:"retained"`   // the client had kept it: [WithRetention]
	Joined     int64 `json:"joined"`     // by re-entry
	Downgraded int64 `json:"downgraded"` // of a writer's lease
}

// Sum returns the sum of all.
func (a Acquired) Sum() int64 {
	return a.AtOnce + a.Queued + a.Local + a.Retained + a.Joined + a.Downgraded
}

// Refused counts requests that failed, except those whose caller gave up.
type Refused struct {
	Held        int64 `json:"held"`        // [ErrHeld], of those that don't wait
	QueueFull   int64 `json:"queue_full"`  // [ErrQueueFull]
	Grace       int64 `json:"grace"`       // [ErrGrace]
	Unreachable int64 `json:"unreachable"` // [ErrUnreachable], [ErrTooSlow], [ErrOutcomeUnknown]
	Denied      int64 `json:"denied"`      // [ErrDenied]
	Closed      int64 `json:"closed"`      // [ErrClosed]
	Invalid     int64 `json:"invalid"`     // a mistake of the program: [ErrInvalidKey], [ErrReentry] and the like
	Other       int64 `json:"other"`       // anything else, such as [ErrForeignData]
}

// Sum returns the sum of all.
func (r Refused) Sum() int64 {
	return r.Held + r.QueueFull + r.Grace + r.Unreachable + r.Denied + r.Closed + r.Invalid + r.Other
}

// GivenUp counts requests whose caller did not wait any longer.
type GivenUp struct {
	Timeout   int64 `json:"timeout"`   // a deadline, or [WithWait]
	Canceled  int64 `json:"canceled"`  // its context was cancelled
	Forgotten int64 `json:"forgotten"` // nothing refers to the channel of its future any more
}

// Sum returns the sum of all.
func (g GivenUp) Sum() int64 { return g.Timeout + g.Canceled + g.Forgotten }

// Ended counts leases by the reason of their end. An end is counted when the client has noticed it.
type Ended struct {
	Unlocked   int64 `json:"unlocked"`
	Expired    int64 `json:"expired"`     // [ErrExpired]
	NotRenewed int64 `json:"not_renewed"` // [ErrNotRenewed]
	Stolen     int64 `json:"stolen"`      // [ErrStolen]
	Forced     int64 `json:"forced"`      // [ErrForced]
	MaxHold    int64 `json:"max_hold"`    // [ErrMaxHold]
	Other      int64 `json:"other"`       // [ErrLost] in another way, as on ZooKeeper
	Closed     int64 `json:"closed"`      // [Client.Close] did not wait for it
}

// Sum returns the sum of all.
func (e Ended) Sum() int64 { return e.Unlocked + e.Lost() + e.Closed }

// Lost returns how many were lost.
func (e Ended) Lost() int64 {
	return e.Expired + e.NotRenewed + e.Stolen + e.Forced + e.MaxHold + e.Other
}

// Renewals counts answers to renewals, of any kind of lease. Leases that share a holding in the store are renewed as one.
type Renewals struct {
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"` // or had no answer in time
	Calls  int64 `json:"calls"`  // to the store; each carries many
}

// Releases counts releases that did not go well. A lease that ended with one was unlocked, as [Ended] counts it.
type Releases struct {
	Unconfirmed int64 `json:"unconfirmed"` // the store has never answered, so the key was left to its TTL
	Lost        int64 `json:"lost"`        // the store said that the key was no longer the client's
}

// Keys counts keys by what the client does with them now. A key may be in several of these.
type Keys struct {
	Used     int64 `json:"used"`     // that the client knows, for any reason
	Queued   int64 `json:"queued"`   // for which the client has requested a place in the store's queue, for all its callers
	Wanted   int64 `json:"wanted"`   // that the client has, and another is known to want: by a renewal, if not sooner
	Retained int64 `json:"retained"` // that it keeps, and nobody holds
	Lent     int64 `json:"lent"`     // whose lease lies in the channel of a future of one key, where nobody has received it
}

// Stats returns the counts. It costs a few microseconds, and no request.
func (c *Client) Stats() Stats {
	if !c.isUsable() {
		return Stats{LeastTrust: 1}
	}
	var sum shardCounts
	for i := range c.shards {
		c.shards[i].addTo(&sum)
	}
	s := Stats{
		Store:     c.features.Name,
		Exclusive: sum.of[Exclusive].public(),
		Readers:   sum.of[Shared].public(),
		Permits:   sum.of[Permits].public(),
		Several:   c.several.public(),
		Renewals:  Renewals{Done: sum.renewed, Failed: sum.notRenewed, Calls: c.renewalCalls.Load()},
		Releases:  Releases{Unconfirmed: c.unconfirmed.Load(), Lost: c.foundLost.Load()},
		Keys:      Keys{Used: sum.used},

		LeastTrust: float64(1 - sum.trust.used),
		Failing:    c.outages.areNow(watchdog.Now()),
		Deaf:       c.deaf.isSo(),

		HooksLeftOut: c.hooks.numberLeftOut(),
	}
	for i, n := range []*int64{&s.Keys.Queued, &s.Keys.Retained, &s.Keys.Lent, &s.Keys.Wanted} {
		*n = sum.uses[i]
	}
	return s
}

// public returns the counts as users see them.
func (n *counts) public() Acquisitions {
	a := Acquisitions{
		Requested: n[requested],
		Acquired: Acquired{
			AtOnce: n[acquired+counter(machine.WayAtOnce)], Queued: n[acquired+counter(machine.WayQueued)],
			Local: n[acquired+counter(machine.WayLocal)], Retained: n[acquired+counter(machine.WayRetained)],
			Joined: n[acquired+counter(machine.WayJoined)], Downgraded: n[acquired+counter(machine.WayDowngraded)],
		},
		Refused: Refused{
			Held: n[refusedHeld], QueueFull: n[refusedQueueFull], Grace: n[refusedGrace], Unreachable: n[refusedUnreachable],
			Denied: n[refusedDenied], Closed: n[refusedClosed], Invalid: n[refusedInvalid], Other: n[refusedOther],
		},
		GivenUp: GivenUp{Timeout: n[givenUpTimeout], Canceled: n[givenUpCanceled], Forgotten: n[givenUpForgotten]},
		Ended: Ended{
			Unlocked: n[endedUnlocked], Expired: n[endedExpired], NotRenewed: n[endedNotRenewed], Stolen: n[endedStolen],
			Forced: n[endedForced], MaxHold: n[endedMaxHold], Other: n[endedOther], Closed: n[endedClosed],
		},
	}
	a.Waiting = a.Requested - a.Acquired.Sum() - a.Refused.Sum() - a.GivenUp.Sum()
	a.Held = a.Acquired.Sum() - a.Ended.Sum()
	return a
}
