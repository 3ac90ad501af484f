// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

func waiterAsksAgainAfterAPause(t *testing.T) {
	const ttl = 4 * time.Second // a request is waited for for a quarter of that
	p, server := openOwnServer(t)
	locks := p.client(asynclock.WithTTL(ttl))
	for _, pause := range []struct {
		length string // in ms
		times  int
	}{{"60", 20}, {"1300", 2}} {
		tell(t, p.again, func(p *place) {
			for range pause.times {
				server.ask(t, "CLIENT", "PAUSE", pause.length, "ALL")
				start := time.Now()
				lease := p.lock(locks, "key")
				p.wantWithin(ttl/2, start, "a free key when the server had paused for "+pause.length+" ms")
				p.unlock(lease)
			}
		})
	}
}

func deadHolderIsNoticedAmongManyKeys(t *testing.T) {
	const others = "for i = 1, 200000 do redis.call('SET', 'other:' .. i, '', 'PX', 600000 + i) end return 1"
	p, server := openOwnServer(t)
	server.ask(t, "EVAL", others, "0")
	tell(t, p.again, killedHolderIsSucceeded)
}

func wakeUpIsPassedOnByThoseWhoGiveUp(t *testing.T) {
	const rounds, crowd = 200, 16
	p, _ := openOwnServer(t)
	all := p.clients(3)
	tell(t, p.again, func(p *place) {
		for range rounds {
			lease := p.lock(all[0], "key")
			wait, giveUp := context.WithCancel(p.ctx)
			for i := range crowd { // in two clients, and before the one who stays
				all[1+i%2].LockChan(wait, "key")
			}
			stays := all[2].LockChan(p.ctx, "key")
			p.awaitWaiters(all[0], "key", 2)
			start := time.Now()
			go giveUp()
			p.unlock(lease)
			p.unlock(p.claim(stays))
			p.wantWithin(soon, start, "the one who went on waiting")
		}
	})
}

func deadHeadIsPassedOver(t *testing.T) {
	p, _ := openOwnServer(t)
	tell(t, p.again, killedWaiterIsPassedOver)
}

// waitersShareASubscription: 10,000 locks that are held and 10,000 waiters for
// them, by two clients.
func waitersShareASubscription(t *testing.T) {
	const locks, atMost = 10_000, 4
	p, _ := openOwnServer(t)
	ours, theirs := p.client(), p.client()
	held, pending := make([]<-chan asynclock.Result, locks), make([]<-chan asynclock.Result, locks)
	for i := range held {
		held[i] = ours.LockChan(p.ctx, jobKey(i))
	}
	leases := make([]*asynclock.Lease, locks)
	for i := range held {
		leases[i] = p.claim(held[i])
	}
	for i := range pending {
		pending[i] = theirs.LockChan(p.ctx, jobKey(i))
	}
	p.awaitWaiters(ours, jobKey(locks-1), 1)
	if got := p.redis.channels(p.ctx, t); len(got) > atMost {
		t.Errorf("channels: got %d for %d waiters, want at most %d", len(got), locks, atMost)
	}
	for _, l := range leases {
		l.UnlockChan(p.ctx)
	}
	for _, future := range pending {
		p.claim(future).UnlockChan(p.ctx)
	}
}
