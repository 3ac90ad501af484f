// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
)

// foreignDataIsLeftAlone puts things of each wrong type under each of a lock's
// Redis keys, and nonsense of the right type.
func foreignDataIsLeftAlone(p *place) {
	locks := p.client()
	probe := p.client()
	// A lock with a holder and a waiter has its record, queue, waiters and
	// counter; that tells their names.
	lease := p.lock(locks, "key")
	pending := probe.LockChan(p.ctx, "key")
	p.awaitWaiters(locks, "key", 1)
	names := p.redisKeys("key")
	p.unlock(lease)
	p.unlock(p.claim(pending))

	for _, foreign := range []struct {
		kind  byte
		held  bool     // somebody holds the key meanwhile
		write []string // the command, without the key
	}{
		{'l', false, []string{"SET", "somebody's data"}},
		{'l', false, []string{"SET", ""}},
		{'l', false, []string{"RPUSH", "somebody's", "list"}},
		{'f', false, []string{"SET", "not a number"}},
		{'f', false, []string{"SET", "99999999999999999999"}},
		{'f', false, []string{"HSET", "a", "hash"}},
		{'q', false, []string{"SET", "somebody's data"}},
		{'q', true, []string{"SET", "somebody's data"}},
		{'w', true, []string{"SET", "somebody's data"}},
		{'w', true, []string{"SADD", "somebody's", "set"}},
	} {
		p.Log(string(foreign.kind), foreign.held, foreign.write)
		if foreign.held {
			lease = p.lock(probe, "key")
		}
		name := names[foreign.kind]
		p.sends("DEL", name)
		p.sends(foreign.write[0], name, foreign.write[1:]...)
		before := p.dump(name)
		wait, cancel := context.WithTimeout(p.ctx, patience)
		if _, err := locks.Lock(wait, "key"); !errors.Is(err, asynclock.ErrForeignData) {
			p.Errorf("Lock: got %v, want ErrForeignData", err)
		}
		if _, err := (<-locks.LockChan(wait, "key")).Lease(); !errors.Is(err, asynclock.ErrForeignData) {
			p.Errorf("LockChan: got %v, want ErrForeignData", err)
		}
		cancel()
		if foreign.held {
			if err := lease.Renew(p.ctx, long); err != nil {
				p.Errorf("Renew of what was held before: got %v, want no error", err)
			}
		} else if _, err := locks.TryLock(p.ctx, "key"); !errors.Is(err, asynclock.ErrForeignData) {
			p.Errorf("TryLock: got %v, want ErrForeignData", err)
		}
		if after := p.dump(name); after != before {
			p.Errorf("it was changed to %q", after)
		}
		p.sends("DEL", name)
		if foreign.held {
			p.unlock(lease)
		}
	}

	// The key is as good as new.
	p.unlock(p.lock(probe, "key"))
}

// sends sends a command about one Redis key.
func (p *place) sends(command, name string, args ...string) {
	p.Helper()
	admin := p.redis.admin
	if err := admin.Do(p.ctx, admin.B().Arbitrary(command).Keys(name).Args(args...).Build()).Error(); err != nil {
		p.Fatalf("%s %s: %v", command, name, err)
	}
}

// dump returns what is stored under a Redis key.
func (p *place) dump(name string) string {
	p.Helper()
	admin := p.redis.admin
	kind, err := admin.Do(p.ctx, admin.B().Type().Key(name).Build()).ToString()
	if err != nil {
		p.Fatal(err)
	}
	read, ok := map[string][]string{
		"string": {"GET"}, "list": {"LRANGE", "0", "-1"}, "hash": {"HGETALL"}, "set": {"SMEMBERS"}, "zset": {"ZRANGE", "0", "-1", "WITHSCORES"},
	}[kind]
	if !ok {
		p.Fatalf("type of %q: got %q", name, kind)
	}
	value, err := admin.Do(p.ctx, admin.B().Arbitrary(read[0]).Keys(name).Args(read[1:]...).Build()).ToAny()
	if err != nil {
		p.Fatal(err)
	}
	return fmt.Sprint(kind, value)
}
