// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
)

// The inputs of the machine, as values for tables. Callers have names.

// A with changes what a waiter asks for.
type with func(*caller)

func future(c *caller)    { c.waiter.Future = true }
func try(c *caller)       { c.waiter.Try = true }
func noRenewal(c *caller) { c.terms.Renew = false }

func reader(c *caller) { c.terms.Mode = store.Shared }

// under bounds the wait by a context.
func under(bound <-chan struct{}) with { return func(c *caller) { c.bound = bound } }

// permits asks for so many of three.
func permits(n int32) with {
	return func(c *caller) { c.terms.Mode, c.terms.Limit, c.waiter.Weight = store.Permits, 3, n }
}

func lasting(d time.Duration) with   { return func(c *caller) { c.terms.TTL = d } }
func maxHold(d time.Duration) with   { return func(c *caller) { c.terms.MaxHold = d } }
func minHold(d time.Duration) with   { return func(c *caller) { c.terms.MinHold = d } }
func retention(d time.Duration) with { return func(c *caller) { c.terms.Retention = d } }
func limit(n int) with               { return func(c *caller) { c.terms.QueueLimit = n } }
func holder(name string) with        { return func(c *caller) { c.terms.Holder = name } }

func (w *world) caller(name string, changes []with) *caller {
	c := &caller{name: name, terms: terms()}
	under(make(chan struct{}))(c)
	for _, change := range changes {
		change(c)
	}
	c.waiter.Caller, c.waiter.Terms = c, &c.terms
	w.callers[name] = c
	w.order = append(w.order, c)
	return c
}

// arrive adds a waiter.
func arrive(name string, changes ...with) input {
	return func(w *world, st *machine.Step) []string {
		c := w.caller(name, changes)
		if err := w.key.Arrive(&c.waiter, st); err != nil {
			c.waiter.Err = err
			return []string{"refused: " + text(err)}
		}
		return nil
	}
}

// leave ends a waiter, as the end of its context does.
func leave(name string) input {
	return func(w *world, st *machine.Step) []string {
		w.key.Leave(&w.callers[name].waiter, errLeft, st)
		return nil
	}
}

// left answers a release that leaves, for the first time.
func left(w *world, st *machine.Step) []string {
	w.host.leaving--
	w.key.Left(nil, st)
	return nil
}

// leftUnknown is left without an answer.
func leftUnknown(w *world, st *machine.Step) []string {
	w.host.leaving--
	w.key.Left(store.ErrOutcomeUnknown, st)
	return nil
}

// receive receives from a future's channel, or begins to.
func receive(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		c := w.callers[name]
		c.received, c.parked, c.boxed = c.boxed, !c.boxed, false
		return nil
	}
}

// receiveBetween receives from a future's channel as late as possible: at the moment when the machine takes the
// result back.
func receiveBetween(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		w.callers[name].between = true
		return nil
	}
}

// forget drops the last reference to a future's channel.
func forget(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		w.callers[name].gone = true
		return nil
	}
}

// stop ends the receiving from a future's channel.
func stop(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		w.callers[name].parked = false
		return nil
	}
}

// look receives from a future's channel, and looks at the result.
func look(name string) input {
	return func(w *world, st *machine.Step) []string {
		c := w.callers[name]
		if !c.received {
			_ = receive(name)(w, st)
			w.outside = false
		}
		w.key.Received(&c.waiter, st)
		if c.waiter.Stage == machine.Ended {
			return []string{"no lease: " + text(c.waiter.Err)}
		}
		return nil
	}
}

// unlock ends a lease.
func unlock(name string) input {
	return func(w *world, st *machine.Step) (said []string) {
		r, again, err := w.key.Unlock(w.callers[name].lease, st)
		if again {
			said = append(said, "unlocked before")
		}
		if err != nil {
			said = append(said, "unlock: "+text(err))
		}
		if r != nil {
			said = append(said, w.release(r))
		}
		return said
	}
}

// unlockInVain ends a lease whose key is another's in the store.
func unlockInVain(name string) input {
	return func(w *world, st *machine.Step) []string {
		r, _, err := w.key.Unlock(w.callers[name].lease, st)
		if r == nil {
			return []string{"no release: " + text(err)}
		}
		return []string{"unlock: " + text(r.Lost(store.ErrStolen))}
	}
}

// check asks whether a lease lasts.
func check(name string, margin time.Duration) input {
	return func(w *world, st *machine.Step) []string {
		return []string{fmt.Sprintf("%s lasts: %t", name, w.key.Check(w.callers[name].lease, margin, st))}
	}
}

// isUnder asks whether the holding of a lease lasts for its context, as a call under that does.
func isUnder(name string) input {
	return func(w *world, st *machine.Step) []string {
		return []string{fmt.Sprintf("under %s: %t", name, w.key.Lasts(w.callers[name].lease, st))}
	}
}

// join lets a caller join the lease of another, as a call under its context does.
func join(name, other string, changes ...with) input {
	return func(w *world, st *machine.Step) []string {
		c := w.caller(name, changes)
		c.waiter.Lease, c.waiter.Stage = w.callers[other].lease, machine.Joining
		if !w.key.Join(&c.waiter, st) {
			return []string{"has to arrive"}
		}
		return nil
	}
}

// rested answers the release with that number, which keeps a part.
func rested(number int, reply store.ReleaseReply) input {
	return func(w *world, st *machine.Step) []string {
		return []string{"told: " + text(w.key.Rested(w.releases[number-1], &reply, st))}
	}
}

// disown makes the lease of a caller, a part of several keys, one that nobody has held.
func disown(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		w.callers[name].lease.Disown()
		return nil
	}
}

// told says what a caller that was refused has learnt of who has the key.
func told(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		var held *machine.HeldError
		if !errors.As(w.callers[name].waiter.Err, &held) {
			return []string{"nothing"}
		}
		return []string{fmt.Sprintf("%s, token %d, for %v, %d wait, %d of %d", held.Holder, held.Token, held.Remaining, held.Waiters, held.Used, held.Limit)}
	}
}

// downgrade begins to turn a writer's lease into a reader's.
func downgrade(name string) input {
	return func(w *world, st *machine.Step) []string {
		d, err := w.key.BeginDowngrade(w.callers[name].lease, st)
		if err != nil {
			return []string{"no downgrade: " + text(err)}
		}
		w.downgrades = append(w.downgrades, d)
		return nil
	}
}

// downgraded answers the downgrade with that number, for a new reader.
func downgraded(number int, name string, reply store.ReleaseReply) input {
	return func(w *world, st *machine.Step) []string {
		c := w.caller(name, []with{reader})
		c.waiter.Since = w.now
		w.key.EndDowngrade(w.downgrades[number-1], &c.waiter, &reply, st)
		return nil
	}
}

// over makes the lease of a caller a part of several keys whose whole has ended.
func over(name string) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		whole := new(machine.Whole)
		w.key.Adopt(w.callers[name].lease, whole)
		whole.Over.Store(true)
		return nil
	}
}

// answer answers the request with that number, in the order in which the machine sent them.
func answer(number int, reply store.AcquireReply) input {
	return func(w *world, st *machine.Step) []string {
		w.key.Answer(w.acquires[number-1], &reply, st)
		return nil
	}
}

// givenUp answers a request whose caller's context has ended.
func givenUp(number int) input {
	return func(w *world, st *machine.Step) []string {
		w.acquires[number-1].Ended = true
		return answer(number, failed(store.ErrOutcomeUnknown))(w, st)
	}
}

// renewed answers a renewal.
func renewed(number int, reply store.RenewReply) input {
	return func(w *world, st *machine.Step) []string {
		w.key.Renewed([]*machine.Renewal{w.renewals[number-1]}, []store.RenewReply{reply}, st)
		return nil
	}
}

// patient says how long a renewal may take.
func patient(number int) input {
	return func(w *world, _ *machine.Step) []string {
		w.outside = true
		return []string{fmt.Sprintf("may take %v", w.renewals[number-1].Timeout)}
	}
}

// late says that a renewal takes longer than its timeout.
func late(number int) input {
	return func(w *world, st *machine.Step) []string {
		w.key.RenewalIsLate(w.renewals[number-1], st)
		return nil
	}
}

// renew renews a lease by hand.
func renew(name string, by time.Duration) input {
	return func(w *world, st *machine.Step) []string {
		r, err := w.key.Renew(w.callers[name].lease, by, st)
		if err != nil {
			return []string{"renew: " + text(err)}
		}
		return []string{w.renewal(r)}
	}
}

// notify is a notification for the present owner.
func notify(e store.Event) input {
	return func(w *world, st *machine.Step) []string {
		e := e // rows that share this input run beside each other
		e.Owner = cmp.Or(e.Owner, w.host.live)
		w.key.Event(&e, st)
		return nil
	}
}

// message grants the key to the present owner.
func message(token int64) input {
	return notify(store.Event{Kind: store.EventGrant, Grant: store.Grant{Token: token}, GrantTTL: grantTTL})
}

// event is a notification without content.
func event(kind store.EventKind) input { return notify(store.Event{Kind: kind}) }

// taken says that somebody has taken the key, and that the store has seen it for itself.
var taken = notify(store.Event{Kind: store.EventLost, Err: store.ErrForced})

// missed says that notifications may have been lost.
func missed(comeAgain bool) input {
	return func(w *world, st *machine.Step) []string {
		w.key.Missed(comeAgain, st)
		return nil
	}
}

// alarm does what is due.
func alarm(w *world, st *machine.Step) []string {
	w.alarm = -1 // it has fired
	w.key.Alarm(st)
	return nil
}

// turnAway and abandon are the two halves of a Close whose context ends.
func turnAway(w *world, st *machine.Step) []string {
	w.key.TurnAway(store.ErrClosed, st)
	return nil
}

func abandon(w *world, st *machine.Step) []string {
	if n := w.key.Abandon(store.ErrClosed, st); n != 1 {
		return []string{fmt.Sprintf("%d leases", n)}
	}
	return nil
}

// several says that the client may have more than one owner.
func several(w *world, _ *machine.Step) []string {
	w.outside = true
	w.host.several = true
	return nil
}

// noQueue says that the store has none, so that it does not know who waits.
func noQueue(w *world, _ *machine.Step) []string {
	w.outside = true
	w.host.noQueue = true
	w.key.Queues, w.key.TriesRequeue = false, false
	return nil
}

// closing says that Close was called.
func closing(w *world, _ *machine.Step) []string {
	w.outside = true
	w.host.closing = true
	return nil
}

// errLeft is the end of a caller's context.
var errLeft = fmt.Errorf("left")

func text(err error) string {
	if err == nil {
		return "nil"
	}
	return failure.Text(err)
}
