// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

func waiterAsksAgainAfterAPause(t *testing.T) {
	const ttl = 6 * time.Second // a request is waited for for a second, and a silent server for two
	env, server := openOwnServer(t)
	locks := env.client(asynclock.WithTTL(ttl))
	for _, pause := range []struct {
		length string // in ms
		times  int
	}{{"60", 20}, {"1300", 2}} {
		tell(t, env.again, func(env *Env) {
			for range pause.times {
				ask(t, server, "CLIENT", "PAUSE", pause.length, "ALL")
				start := time.Now()
				lease := env.lock(locks, "key")
				env.wantWithin(ttl/2, start, "a free key when the server had paused for "+pause.length+" ms")
				env.unlock(lease)
			}
		})
	}
}

func deadHolderIsNoticedAmongManyKeys(t *testing.T) {
	const others = "for i = 1, 200000 do redis.call('SET', 'other:' .. i, '', 'PX', 600000 + i) end return 1"
	env, server := openOwnServer(t)
	ask(t, server, "EVAL", others, "0")
	tell(t, env.again, killedHolderIsSucceeded)
}

func wakeUpIsPassedOnByThoseWhoGiveUp(t *testing.T) {
	const rounds, crowd = 200, 16
	env, _ := openOwnServer(t)
	all := env.clients(3)
	tell(t, env.again, func(env *Env) {
		for range rounds {
			lease := env.lock(all[0], "key")
			wait, giveUp := context.WithCancel(env.ctx)
			for i := range crowd { // in two clients, and before the one who stays
				all[1+i%2].LockChan(wait, "key")
			}
			stays := all[2].LockChan(env.ctx, "key")
			env.awaitWaiters(all[0], "key", 2)
			start := time.Now()
			go giveUp()
			env.unlock(lease)
			env.unlock(env.claim(stays))
			env.wantWithin(soon, start, "the one who went on waiting")
		}
	})
}

func deadHeadIsPassedOver(t *testing.T) {
	env, _ := openOwnServer(t)
	tell(t, env.again, killedWaiterIsPassedOver)
}

// waitersShareASubscription: 2,000 locks that are held and 2,000 waiters for
// them, by two clients.
func waitersShareASubscription(t *testing.T) {
	const locks, atMost = 2_000, 4
	env, _ := openOwnServer(t)
	patient := asynclock.WithTTL(time.Minute) // a busy machine takes its time to claim them all
	ours, theirs := env.client(patient), env.client(patient)
	held, pending := make([]<-chan asynclock.Result, locks), make([]<-chan asynclock.Result, locks)
	for i := range held {
		held[i] = ours.LockChan(env.ctx, jobKey(i))
	}
	leases := make([]*asynclock.Lease, locks)
	for i := range held {
		leases[i] = env.claim(held[i])
	}
	for i := range pending {
		pending[i] = theirs.LockChan(env.ctx, jobKey(i))
	}
	env.awaitWaiters(ours, jobKey(locks-1), 1)
	if got := env.redis.channels(env.ctx, t); len(got) > atMost {
		t.Errorf("channels: got %d for %d waiters, want at most %d", len(got), locks, atMost)
	}
	const few = 100 // a grant that a message brings has to be claimed within seconds
	for first := 0; first < locks; first += few {
		for _, l := range leases[first : first+few] {
			l.UnlockChan(env.ctx)
		}
		for _, future := range pending[first : first+few] {
			env.claim(future).UnlockChan(env.ctx)
		}
	}
}
