// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A brake holds up a client's watchdog as the system holds up a process: what
// is due is not done in time. The store's sessions do not return from Lane, which
// the watchdog asks before it sends a renewal. Events still arrive, and callers
// can still ask.
type brake struct {
	client  *asynclock.Client
	number  int
	on      atomic.Pointer[string] // the key at whose renewal to stand still
	stopped chan struct{}          // receives when the watchdog does
	moving  chan struct{}          // closed when it may go on
}

// braked makes the next client, with a brake.
func (w *world) braked(options ...asynclock.ClientOption) (*asynclock.Client, *brake) {
	w.Helper()
	b := &brake{number: w.clients, stopped: make(chan struct{})}
	w.clients++
	b.client = w.clientOf(altered{Store: w.store, lane: b.lane}, options...)
	return b.client, b
}

func (b *brake) lane(key string) int {
	if on := b.on.Load(); on != nil && *on == key && b.on.CompareAndSwap(on, nil) {
		b.stopped <- struct{}{}
		<-b.moving
	}
	return 0
}

// pull makes the watchdog stand still until the returned function is called. It
// takes some 30 ms, until a renewal is due for that.
func (b *brake) pull(w *world) (goOn func()) {
	w.Helper()
	b.moving = make(chan struct{})
	goOn = sync.OnceFunc(func() { close(b.moving) })
	w.Cleanup(goOn)
	key := b.ownShard(w)
	b.on.Store(&key)
	<-b.stopped
	return goOn
}

// ownShard locks a key that shares its part of the client, and so a mutex, with
// no other key so far: an owner's last two digits say which part.
func (b *brake) ownShard(w *world) (key string) {
	w.Helper()
	shards := func(m asynclocktest.Match) map[string]bool {
		found := make(map[string]bool)
		for _, c := range w.store.Calls(m.From(b.number)) {
			found[c.Owner[len(c.Owner)-2:]] = true
		}
		return found
	}
	others := shards(asynclocktest.Acquire.Any)
	for i := 0; ; i++ {
		key = fmt.Sprint("brake ", i)
		l := lock(w, b.client, key, asynclock.WithTTL(asynclock.MinTTL))
		for shard := range shards(asynclocktest.Acquire.On(key)) {
			if !others[shard] {
				return key
			}
		}
		unlock(w, l)
	}
}
