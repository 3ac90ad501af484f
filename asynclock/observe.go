// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"slices"
	"sync"

	"github.com/asynclock/asynclock-go/store"
)

// An Announcement is what a holder has told observers of its key by [Lease.Announce], or that its lease has ended. It
// proves nothing, and is as old as its message.
//
// Token and Seq order the announcements of a key. An end comes after all else with its token. Announcements may be lost,
// late, repeated, or come in another order.
type Announcement = store.Announcement

// An Observer receives what is announced about a key. Its functions are called from any goroutine, also from several at
// once. They must not block. Nil functions are not called.
type Observer struct {
	// Announced is called with each announcement. The data is shared, and nobody may change it.
	Announced func(Announcement)
	// Look is called when announcements may have been missed. So the observer should look at the key, as by
	// [Client.Note]. If live is true, announcements come through from now on. Otherwise they may not, for example
	// because the client was closed, and the observer should look from time to time.
	Look func(live bool)
}

// Observe tells o what is announced about the key. Before o looks for the first time, Observe should have returned.
// All observers of a key in the client share what the store needs for it. The end of the client ends all observing.
//
// The function stop ends it. It can be called again. Calls of o that are under way then may go on for a moment.
//
// Errors: [ErrUnsupported] in a store without announcements ([store.Features]), [ErrInvalidKey], [ErrInvalidOption],
// [ErrClosed].
func (c *Client) Observe(key string, o Observer) (stop func(), err error) {
	seen, err := c.observe(key, o)
	if err != nil {
		return nil, &Error{"observe", key, err}
	}
	return sync.OnceFunc(func() { c.observers.remove(key, seen) }), nil
}

func (c *Client) observe(key string, o Observer) (*Observer, error) {
	if !c.isUsable() {
		return nil, errNoClient
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if c.closing.Load() {
		return nil, ErrClosed
	}
	session, ok := c.session.(store.ObserveSession)
	if !ok || !c.features.Announcements {
		return nil, fmt.Errorf("%w: announcements", ErrUnsupported)
	}
	if err := c.observers.add(session, key, &o); err != nil {
		return nil, err
	}
	if c.closing.Load() { // Close may not have seen o, and then it never tells it
		c.observers.remove(key, &o)
		return nil, ErrClosed
	}
	return &o, nil
}

// observers are all those of a client.
type observers struct {
	// turn is held while the store is told, so that it hears of the last change last.
	turn    sync.Mutex
	session store.ObserveSession

	mu   sync.Mutex // is held for moments, and while nothing is called
	keys map[string]*observed
}

// An observed key has at least one observer.
type observed struct {
	observers []*Observer
	live      bool // announcements come through
	beginning bool // the store is being told of it: who does so calls Look afterwards
}

// add adds an observer, and tells it whether announcements come through. Look may call [Client.Observe], and what that
// returns, so nobody's turn lasts until then.
func (all *observers) add(session store.ObserveSession, key string, o *Observer) error {
	k, err := all.begin(session, key, o)
	if err != nil {
		return err
	}
	all.mu.Lock()
	live := k.live
	all.mu.Unlock()
	if live {
		all.look(k, o, true)
	}
	return nil
}

// begin tells the store of the first observer of a key.
func (all *observers) begin(session store.ObserveSession, key string, o *Observer) (*observed, error) {
	all.turn.Lock()
	defer all.turn.Unlock()
	all.mu.Lock()
	if all.keys == nil {
		all.keys, all.session = make(map[string]*observed), session
	}
	k := all.keys[key]
	isFirst := k == nil
	if isFirst {
		k = &observed{beginning: true}
		all.keys[key] = k
	}
	k.observers = append(slices.Clone(k.observers), o)
	all.mu.Unlock()
	if !isFirst {
		return k, nil
	}
	err := session.Observe(key, true)
	all.mu.Lock()
	k.beginning = false
	all.mu.Unlock()
	if err != nil {
		all.drop(key, o)
	}
	return k, err
}

// look tells an observer whether announcements come through. If that has changed meanwhile, another goroutine may have said
// so before. The last that it is told must be true.
func (all *observers) look(k *observed, o *Observer, live bool) {
	for o.Look != nil {
		o.Look(live)
		all.mu.Lock()
		now := k.live
		all.mu.Unlock()
		if now == live {
			return
		}
		live = now
	}
}

// remove tells the store when the last observer of a key has left.
func (all *observers) remove(key string, o *Observer) {
	all.turn.Lock()
	defer all.turn.Unlock()
	if all.drop(key, o) {
		_ = all.session.Observe(key, false) // fails only if the session was left
	}
}

// drop removes o, and reports whether it was the last one.
func (all *observers) drop(key string, o *Observer) (last bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	k := all.keys[key]
	if k == nil {
		return false
	}
	k.observers = slices.DeleteFunc(slices.Clone(k.observers), func(other *Observer) bool { return other == o })
	if len(k.observers) > 0 {
		return false
	}
	delete(all.keys, key)
	return true
}

// told passes on an event of the store.
func (all *observers) told(e *store.Event) {
	live := e.Kind == store.EventObserving
	all.mu.Lock()
	k := all.keys[e.Key]
	if k == nil {
		all.mu.Unlock()
		return
	}
	list := k.observers
	if e.Kind != store.EventAnnounced {
		if k.live = live; k.beginning {
			list = nil
		}
	}
	all.mu.Unlock()
	for _, o := range list {
		switch {
		case e.Kind != store.EventAnnounced:
			all.look(k, o, live)
		case e.Announcement != nil && o.Announced != nil:
			o.Announced(*e.Announcement)
		}
	}
}

// close tells all observers to look. They find that the client is closed.
func (all *observers) close() {
	all.mu.Lock()
	var keys []string
	for key := range all.keys {
		keys = append(keys, key)
	}
	all.mu.Unlock()
	for _, key := range keys {
		all.told(&store.Event{Kind: store.EventUnobserved, Key: key})
	}
}
