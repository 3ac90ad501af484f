// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// faults are ways to get a store wrong, each with a case that notices.
var faults = []fault{
	// Exclusion and the holder's rights.
	{breaks: "a held key is granted", caught: "many clients on one key hold it one at a time", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if reply.Status == store.Waiting && reply.Rank > 1 {
			reply.Status, reply.Token = store.Granted, reply.Mark+1
		}
		return reply
	}},
	{breaks: "acquire again does not set the TTL", caught: "acquire sent again gives the same grant and sets the TTL", acquire: cached(store.Granted)},
	{breaks: "acquire again gives another token", caught: "acquire sent again gives the same grant and sets the TTL", acquire: func(c *session, r acquireRequest) acquireReply {
		if reply := c.acquire(r); reply.Status != store.Granted {
			return reply
		}
		c.release(releaseRequest{Key: r.Key, Owner: r.Owner})
		return c.acquire(r)
	}},
	{breaks: "not waiting still queues", caught: "a held key is refused to one who does not wait", acquire: func(c *session, r acquireRequest) acquireReply {
		try := !r.Wait
		r.Wait = true
		reply := c.acquire(r)
		if try && reply.Status == store.Waiting {
			reply.Status = store.Held
		}
		return reply
	}},
	{breaks: "who waits is told of another holder", caught: "a waiter is told its place and what remains", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if reply.Status == store.Waiting {
			reply.Holder, reply.HolderToken = r.Description, reply.Ticket
		}
		return reply
	}},
	{breaks: "a release ignores the owner", caught: "a release by a stranger does nothing", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if !reply.WasHeld {
			reply.WasHeld, _ = c.Session.Force(context.Background(), r.Key, 0)
		}
		return reply
	}},
	{breaks: "a release is said to have held whenever asked", caught: "a release repeated finds nothing held", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		reply.WasHeld = true
		return reply
	}},
	{breaks: "a release that held has a cause", caught: "a free key is granted and a release frees it", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		reply.Cause = store.ErrExpired
		return reply
	}},
	{breaks: "the cause of a release is no loss", caught: "a release by a stranger does nothing", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if !reply.WasHeld {
			reply.Cause = store.ErrUnreachable
		}
		return reply
	}},
	{breaks: "a release does not say why it found nothing", caught: "a release by a stranger does nothing", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		reply.Cause = nil
		return reply
	}},
	{breaks: "a release takes expired for stolen", caught: "a release that finds nothing held says who has the key", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if reply.Cause != nil {
			reply.Cause = store.ErrStolen
		}
		return reply
	}},
	{breaks: "a release takes stolen for expired", caught: "a release that finds nothing held says who has the key", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if reply.Cause != nil {
			reply.Cause = store.ErrExpired
		}
		return reply
	}},
	{breaks: "holdings never expire", caught: "an expired holding lets the next in by its own poll", acquire: request(func(r *acquireRequest) { r.TTL = time.Hour })},
	{breaks: "a release looks at the token, not at the owner", caught: "a late release leaves the successor alone", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if !reply.WasHeld && r.Token != 0 {
			reply.WasHeld, _ = c.Session.Force(context.Background(), r.Key, 0)
		}
		return reply
	}},

	// Renewal.
	{breaks: "a renewal does nothing", caught: "a renewal extends the holding", renew: func(*session, renewRequest) renewReply {
		return renewReply{}
	}},
	{breaks: "a renewal re-creates what expired", caught: "a renewal after expiry is told so and brings nothing back", renew: func(c *session, r renewRequest) renewReply {
		reply := c.renew(r)
		if errors.Is(reply.Err, store.ErrExpired) {
			return renewReply{Err: c.acquire(acquireRequest{Key: r.Key, Owner: r.Owner, TTL: r.TTL}).Err}
		}
		return reply
	}},
	{breaks: "a renewal re-creates what was released", caught: "a renewal after the release brings nothing back", renew: func(c *session, r renewRequest) renewReply {
		reply := c.renew(r)
		if errors.Is(reply.Err, store.ErrExpired) {
			c.acquire(acquireRequest{Key: r.Key, Owner: r.Owner, TTL: r.TTL})
		}
		return reply
	}},
	{breaks: "a renewal shortens", caught: "a renewal never shortens the holding", renew: func(c *session, r renewRequest) renewReply {
		reply := c.renew(r)
		if reply.Err == nil {
			c.release(releaseRequest{Key: r.Key, Owner: r.Owner})
			c.acquire(acquireRequest{Key: r.Key, Owner: r.Owner, TTL: r.TTL, Description: "renewed"})
		}
		return reply
	}},
	{breaks: "a renewal takes expired for stolen", caught: "a renewal after expiry is told so and brings nothing back", renew: renewed(func(_ renewRequest, reply *renewReply) {
		if reply.Err != nil {
			reply.Err = store.ErrStolen
		}
	})},
	{breaks: "a renewal takes stolen for expired", caught: "a renewal by a stranger is told that the key is stolen", renew: renewed(func(_ renewRequest, reply *renewReply) {
		if reply.Err != nil {
			reply.Err = store.ErrExpired
		}
	})},
	{breaks: "a renewal does not count the waiters", caught: "a renewal says how many wait", renew: renewed(func(_ renewRequest, reply *renewReply) { reply.Waiters = 0 })},

	// Keeping back.
	{breaks: "a key is not kept back", caught: "a key kept back goes to nobody", release: released(func(r *releaseRequest) { r.HoldBack = 0 })},
	{breaks: "a key is kept back for ever", caught: "a key kept back goes to the next when the time is over", release: released(func(r *releaseRequest) { r.HoldBack *= 1000 })},
	{breaks: "a key kept back is its old owner's", caught: "a key kept back goes to nobody", release: func(c *session, r releaseRequest) releaseReply {
		if r.HoldBack > 0 {
			return releaseReply{WasHeld: true} // still held
		}
		return c.release(r)
	}},
	{breaks: "a renewal takes kept back for stolen", caught: "a key kept back goes to nobody", renew: func(c *session, r renewRequest) renewReply {
		reply := c.renew(r)
		if info, err := c.Inspect(context.Background(), r.Key); err == nil && info.Held && errors.Is(reply.Err, store.ErrExpired) {
			reply.Err = store.ErrStolen
		}
		return reply
	}},
	{breaks: "nobody is told that a key is kept back", caught: "the first waiter is told when the key is kept back, and for how long", event: without(store.EventWake)},
	{breaks: "the next waiter is not told that it is the first", caught: "the next waiter is told when the first one leaves a key that is kept back", event: without(store.EventWake)},
	{breaks: "a key kept back is given to the requeued", caught: "a key kept back makes the requeued wait, too", release: released(func(r *releaseRequest) {
		if r.Requeue != nil {
			r.HoldBack = 0
		}
	})},

	// The queue.
	{breaks: "a newcomer passes the queue of a free key", caught: "nobody passes a queue, even if the key is free", acquire: func(c *session, r acquireRequest) acquireReply {
		free := !c.inspect(r.Key).Held
		reply := c.acquire(r)
		if free && reply.Status == store.Held {
			reply.Status = store.Granted
		}
		return reply
	}},
	{breaks: "the last to come is served first", caught: "a release hands the key to the waiters in their order", acquire: func(c *session, r acquireRequest) acquireReply {
		if r.Ticket == 0 {
			r.Ticket = -c.store.calls.Add(1)
		}
		return c.acquire(r)
	}},
	{breaks: "a repeated request queues again", caught: "a request repeated takes one place", acquire: func(c *session, r acquireRequest) acquireReply {
		if r.Wait && c.inspect(r.Key).Waiters > 0 {
			r.Owner += "again"
		}
		return c.acquire(r)
	}},
	{breaks: "rank counts from one", caught: "a waiter is told its place and what remains", acquire: replied(func(r *acquireReply) { r.Rank++ })},
	{breaks: "remaining is not known but said to be zero", caught: "a waiter gets the key after the release", acquire: replied(func(r *acquireReply) { r.Remaining = 0 })},
	{breaks: "the queue has no limit", caught: "a full queue refuses newcomers and no one else", acquire: request(func(r *acquireRequest) { r.QueueLimit = 0 })},
	{breaks: "a full queue refuses heartbeats", caught: "a full queue refuses newcomers and no one else", acquire: func(c *session, r acquireRequest) acquireReply {
		if r.QueueLimit > 0 && c.inspect(r.Key).Waiters >= r.QueueLimit {
			return acquireReply{Status: store.Full}
		}
		return c.acquire(r)
	}},
	{breaks: "a full queue refuses one that was dropped", caught: "a dropped waiter is not refused by a full queue", acquire: func(c *session, r acquireRequest) acquireReply {
		if info := c.inspect(r.Key); r.QueueLimit > 0 && info.Waiters >= r.QueueLimit && info.Queue[0].Holder != r.Description {
			return acquireReply{Status: store.Full}
		}
		return c.acquire(r)
	}},
	{breaks: "one limit for all", caught: "one request can pass over the limit of another", acquire: request(func(r *acquireRequest) { r.QueueLimit = 1 })},
	{breaks: "the requeued goes to the head", caught: "a requeued holder goes to the tail", release: released(func(r *releaseRequest) {
		if r.Requeue != nil {
			r.Requeue.Ticket = 1
		}
	})},
	{breaks: "requeue has no answer", caught: "a requeued holder with nobody waiting is granted at once", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		reply.Requeue = nil
		return reply
	}},
	{breaks: "requeue repeated queues again", caught: "a release with requeue can be repeated", release: func(c *session, r releaseRequest) releaseReply {
		if r.Requeue != nil && c.inspect(r.Key).Waiters > 0 {
			again := *r.Requeue
			again.Owner += time.Now().String()
			r.Requeue = &again
			time.Sleep(time.Millisecond)
		}
		return c.release(r)
	}},
	{breaks: "requeue into a full queue does not release", caught: "a release with requeue into a full queue still releases", release: func(c *session, r releaseRequest) releaseReply {
		if q := r.Requeue; q != nil && q.QueueLimit > 0 && c.inspect(r.Key).Waiters >= q.QueueLimit {
			return releaseReply{WasHeld: true, Requeue: &acquireReply{Status: store.Full}}
		}
		return c.release(r)
	}},

	{breaks: "the dead are counted", caught: "inspect and list count the living only", inspect: func(i store.Info) store.Info {
		i.Waiters++
		return i
	}},
	{breaks: "a key of the dead is listed", caught: "a key whose holder and waiters have died is not listed", list: func(c *session, prefix string) iter.Seq2[store.Info, error] {
		return func(yield func(store.Info, error) bool) {
			yield(c.inspect(prefix), nil)
		}
	}},

	// Handoff.
	{breaks: "a release frees the key instead of handing it on", caught: "a missed grant is found by asking again", release: released(func(r *releaseRequest) { r.HoldBack = max(r.HoldBack, time.Millisecond) })},
	{breaks: "the message of a grant is not sent", caught: "a release hands the key to the waiters in their order", event: without(store.EventGrant)},
	{breaks: "the message of a grant names another grant TTL", caught: "a release hands the key to the waiters in their order", event: func(e event) (event, bool) {
		e.GrantTTL *= 2
		return e, true
	}},
	{breaks: "the message of a grant does not count the waiters", caught: "a release hands the key to the waiters in their order", event: func(e event) (event, bool) {
		e.Waiters = 0
		return e, true
	}},
	{breaks: "the message of a grant has another token", caught: "a missed grant is found by asking again", event: func(e event) (event, bool) {
		e.Grant.Token++
		return e, true
	}},
	{breaks: "a handoff lasts for the TTL", caught: "a grant that nobody looks at ends with its grant TTL", acquire: request(func(r *acquireRequest) { r.GrantTTL = r.TTL })},
	{breaks: "asking after a grant leaves the grant TTL", caught: "asking again turns a grant TTL into a TTL", acquire: request(func(r *acquireRequest) {
		if r.Ticket != 0 {
			r.TTL = r.GrantTTL
		}
	})},
	{breaks: "force does not hand on", caught: "force hands the key to the next waiter", force: func(c *session, key string, _ int64) (bool, error) {
		return c.inspect(key).Held, nil
	}},
	{breaks: "force always says that it took the key", caught: "force takes the key from its holder", force: func(c *session, key string, token int64) (bool, error) {
		_, err := c.Session.Force(context.Background(), key, token)
		return true, err
	}},
	{breaks: "force looks at no token", caught: "force about another token changes nothing and says who holds the key", force: func(c *session, key string, _ int64) (bool, error) {
		return c.Session.Force(context.Background(), key, 0)
	}},
	{breaks: "force about a token never takes the key", caught: "force about the holder's token takes the key", force: func(c *session, key string, token int64) (bool, error) {
		return c.Session.Force(context.Background(), key, -token)
	}},
	{breaks: "force about a token takes the key from a later holder", caught: "force about a token repeated leaves the next holder alone", force: func(c *session, key string, token int64) (bool, error) {
		return c.Session.Force(context.Background(), key, max(token, c.inspect(key).Token))
	}},
	{breaks: "force goes by the token that was granted", caught: "force goes by the token that a renewal wrote back", force: func(c *session, key string, token int64) (bool, error) {
		if held := c.inspect(key).Token; token != 0 && held == token+1 {
			token = held
		}
		return c.Session.Force(context.Background(), key, token)
	}},
	{breaks: "a force that is refused does not say who holds the key", caught: "force about another token changes nothing and says who holds the key", force: func(c *session, key string, token int64) (bool, error) {
		held, err := c.Session.Force(context.Background(), key, token)
		var other *store.OtherHolderError
		if errors.As(err, &other) {
			other.Info = store.Info{Key: key, Held: true}
		}
		return held, err
	}},

	// Withdrawal.
	{breaks: "a waiter can't withdraw", caught: "a waiter that withdraws is passed over", release: func(c *session, r releaseRequest) releaseReply {
		if r.Token == 0 && !r.Uncertain {
			return releaseReply{}
		}
		return c.release(r)
	}},
	{breaks: "a withdrawal does not find the grant", caught: "a waiter that withdraws after its grant hands the key on", release: func(c *session, r releaseRequest) releaseReply {
		if r.Uncertain {
			r.Owner = "somebody"
		}
		return c.release(r)
	}},
	{breaks: "a withdrawal leaves no trace", caught: "a late request of a withdrawn owner is refused", release: released(func(r *releaseRequest) { r.Uncertain = false })},
	{breaks: "a withdrawal closes the key", caught: "a withdrawal does not refuse anybody else", release: func(c *session, r releaseRequest) releaseReply {
		reply := c.release(r)
		if r.Uncertain && !reply.WasHeld {
			c.acquire(acquireRequest{Key: r.Key, Owner: "nobody", TTL: time.Minute})
		}
		return reply
	}},

	// WaiterTTL.
	{breaks: "waiters live for ever", caught: "a dead waiter is skipped", acquire: request(func(r *acquireRequest) { r.WaiterTTL = time.Hour })},
	{breaks: "dead waiters are counted as ahead", caught: "a dead waiter keeps nobody from a free key", acquire: func(c *session, r acquireRequest) acquireReply {
		if r.Wait {
			r.WaiterTTL = time.Hour
		}
		return c.acquire(r)
	}},
	{breaks: "heartbeats are not noted", caught: "heartbeats keep a waiter alive", acquire: cached(store.Waiting)},
	{breaks: "a place of another key is none", caught: "a place in the queue of another key of the lane counts", acquire: request(func(r *acquireRequest) { r.Ticket = 0 })},
	{breaks: "a dropped waiter goes to the tail", caught: "a dropped waiter comes back to its place", acquire: request(func(r *acquireRequest) { r.Ticket = 0 })},

	// Tokens.
	{breaks: "tokens start again with each grant", caught: "tokens rise through release, expiry and force", acquire: replied(func(r *acquireReply) { r.Token = 1 })},
	{breaks: "spare tokens are given twice", caught: "tokens rise through release, expiry and force", acquire: replied(func(r *acquireReply) { r.Reserved *= 2 })},
	{breaks: "tokens do not rise with time as promised", caught: "tokens rise through release, expiry and force", acquire: replied(func(r *acquireReply) { r.Reserved, r.TokensFollowClock = 1<<20-1, true })},
	{breaks: "a renewal does not write back tokens", caught: "tokens rise over what the holder wrote back", renew: func(c *session, r renewRequest) renewReply {
		r.Token = 0
		return c.renew(r)
	}},
	{breaks: "acquire again gives a token that nobody used", caught: "acquire sent again after tokens were written back gives one of the holder's own", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if first, again := c.store.acquired(r.Owner, reply); again && reply.Token > first.Token {
			reply.Token++
		}
		return reply
	}},
	{breaks: "acquire again sets spare tokens aside anew", caught: "acquire sent again after tokens were written back gives one of the holder's own", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if first, again := c.store.acquired(r.Owner, reply); again {
			reply.Reserved = first.Reserved
		}
		return reply
	}},
	{breaks: "a release does not write back tokens", caught: "tokens rise over what the holder wrote back", release: released(func(r *releaseRequest) { r.Token = 0 })},
	{breaks: "inspect shows the first token only", caught: "inspect shows the token that a renewal wrote back", inspect: func(i store.Info) store.Info {
		i.Token = (i.Token-1)&^(1<<20-1) + 1
		return i
	}},
	{breaks: "the mark is always low", caught: "the mark of a waiting reply divides old grants from new ones", acquire: replied(func(r *acquireReply) { r.Mark = 0 })},
	{breaks: "the mark is too high", caught: "the mark of a waiting reply divides old grants from new ones", acquire: replied(func(r *acquireReply) { r.Mark += 2 })},

	// Other messages.
	{breaks: "nobody is told of contention", caught: "a holder that asked is told when someone queues", event: without(store.EventQueued)},
	{breaks: "a renewal can't ask for word of contention", caught: "a holder can ask by its renewal to be told when someone queues", renew: func(c *session, r renewRequest) renewReply {
		r.NotifyQueued = false
		return c.renew(r)
	}},
	{breaks: "a waiter's wish for word of contention is lost at the handoff", caught: "a waiter can ask to be told when it holds and someone queues", acquire: request(func(r *acquireRequest) { r.NotifyQueued = false })},
	{breaks: "messages can never be counted on", caught: "a holder is told when the key is taken by force", acquire: silent.acquire, release: silent.release, event: silent.event},
	{breaks: "nobody is told who wants a key", caught: "a holder that asked is told when someone is refused its key", event: without(store.EventRequested)},
	{breaks: "whoever is refused is told that the holder was told", caught: "nobody is told that others want the key who did not ask for that", acquire: replied(func(r *acquireReply) { r.HolderNotified = r.Status == store.Held })},
	{breaks: "whoever is refused is not told that the holder was told", caught: "a holder that asked is told when someone is refused its key", acquire: replied(func(r *acquireReply) { r.HolderNotified = false })},
	{breaks: "a heartbeat tells nobody", caught: "a holder that asked is told when someone queues, and again when that one asks again", acquire: cached(store.Waiting)},
	{breaks: "a waiter's wish to hear is forgotten", caught: "a waiter can ask to be told when it holds and others want the key", acquire: request(func(r *acquireRequest) { r.NotifyRequests = false })},
	{breaks: "everyone is told who wants a key", caught: "nobody is told that others want the key who did not ask for that", acquire: request(func(r *acquireRequest) { r.NotifyRequests = true })},
	{breaks: "a reply promises to tell whatever was asked", caught: "a reply says whether the holder will be told", acquire: replied(func(r *acquireReply) { r.WillNotify = true })},
	{breaks: "a reply promises to tell nobody", caught: "a reply says whether the holder will be told", acquire: replied(func(r *acquireReply) { r.WillNotify = false })},
	{breaks: "a release that tries anew waits", caught: "a release can ask for the key anew without waiting", release: released(func(r *releaseRequest) {
		if r.Requeue != nil {
			again := *r.Requeue
			again.Wait = true
			r.Requeue = &again
		}
	})},
	{breaks: "nobody is told of force", caught: "a holder is told when the key is taken by force", event: without(store.EventForced)},

	// Output for people.
	{breaks: "inspect shows the owner", caught: "inspect describes the holder", acquire: request(func(r *acquireRequest) { r.Description = r.Owner })},
	{breaks: "inspect forgets the order of the queue", caught: "inspect describes the queue", inspect: func(i store.Info) store.Info {
		for l, r := 0, len(i.Queue)-1; l < r; l, r = l+1, r-1 {
			i.Queue[l], i.Queue[r] = i.Queue[r], i.Queue[l]
		}
		return i
	}},
	{breaks: "list takes the prefix anywhere in the key", caught: "list finds what is held, by prefix", list: filtered(strings.Contains)},
	{breaks: "list takes the prefix for a pattern", caught: "list takes a prefix of any characters literally", list: filtered(func(key, prefix string) bool {
		matched, err := path.Match(strings.ReplaceAll(prefix, "/", "_")+"*", strings.ReplaceAll(key, "/", "_"))
		return matched && err == nil
	})},
	{breaks: "list looks at holdings only", caught: "list finds a free key that is waited for", list: func(c *session, prefix string) iter.Seq2[store.Info, error] {
		return func(yield func(store.Info, error) bool) {
			for info, err := range c.Session.List(context.Background(), prefix) {
				if info.Held && !yield(info, err) {
					return
				}
			}
		}
	}},
	{breaks: "list ends after the first page", caught: "list pages through many keys", list: func(c *session, prefix string) iter.Seq2[store.Info, error] {
		return func(yield func(store.Info, error) bool) {
			n := 0
			for info, err := range c.Session.List(context.Background(), prefix) {
				if n++; n > 200 || !yield(info, err) {
					return
				}
			}
		}
	}},

	// Keys.
	{breaks: "keys are the same in capitals", caught: "keys of any characters stay distinct", acquire: renamed(strings.ToUpper)},
	{breaks: "identifiers are the same in capitals", caught: "keys that are one lock are spelled as one", acquire: renamed(func(key string) string {
		if len(key) == 36 && strings.EqualFold(key[:3], "abc") {
			return strings.ToLower(key)
		}
		return key
	})},
	{breaks: "keys are trimmed", caught: "keys of any characters stay distinct", acquire: renamed(strings.TrimSpace)},
	{breaks: "keys are unescaped", caught: "keys of any characters stay distinct", acquire: renamed(func(key string) string {
		if plain, err := url.PathUnescape(key); err == nil {
			return plain
		}
		return key
	})},
	{breaks: "keys are cut", caught: "keys of any characters stay distinct", acquire: renamed(func(key string) string { return key[:min(len(key), store.MaxKeyLen-1)] })},
	{breaks: "keys end at a brace", caught: "keys of any characters have queues of their own", acquire: renamed(func(key string) string {
		before, _, _ := strings.Cut(key, "}")
		return before
	})},

	// Calls.
	{breaks: "a batch of renewals has a reply too few", caught: "each element of a batch has its own answer", short: "Renew"},
	{breaks: "a batch of releases has a reply too few", caught: "each element of a batch has its own answer", short: "Release"},
	{breaks: "a batch is not answered to its end", caught: "each element of a batch has its own answer", batch: func(n int) int { return min(n, 128) }},
	{breaks: "a batch is answered as its last element", caught: "one batch grants a key once", acquire: func(c *session, r acquireRequest) acquireReply {
		reply := c.acquire(r)
		if !r.Wait {
			reply.Status = store.Granted
		}
		return reply
	}},
	{breaks: "the context is not looked at", caught: "a context that has ended does nothing", context: context.WithoutCancel},
	{breaks: "a session can be used after it was left", caught: "a session that was left answers that it is closed", leave: func(*session) error { return nil }},
	{breaks: "leaving releases", caught: "leaving does not release", leave: func(c *session) error {
		for info, err := range c.Session.List(context.Background(), "") {
			if err != nil {
				return err
			}
			_, _ = c.Session.Force(context.Background(), info.Key, 0)
		}
		return c.Session.Close(context.Background())
	}},
}
