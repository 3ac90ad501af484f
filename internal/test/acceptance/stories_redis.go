// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
)

// foreignDataIsLeftAlone puts things of each wrong type under each of a lock's
// Redis keys, and nonsense of the right type.
func foreignDataIsLeftAlone(env *Env) {
	locks := env.client()
	probe := env.client()
	// A lock with a holder and a waiter has its record, queue, waiters and
	// counter; that tells their names.
	lease := env.lock(locks, "key")
	pending := probe.LockChan(env.ctx, "key")
	env.awaitWaiters(locks, "key", 1)
	names := env.redisKeys("key")
	env.unlock(lease)
	env.unlock(env.claim(pending))

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
		env.Log(string(foreign.kind), foreign.held, foreign.write)
		if foreign.held {
			lease = env.lock(probe, "key")
		}
		name := names[foreign.kind]
		if !foreign.held {
			env.sends("DEL", names['l']) // a client looks at nothing else while it finds the vacancy that it left
		}
		env.sends("DEL", name)
		env.sends(foreign.write[0], name, foreign.write[1:]...)
		before := env.dump(name)
		wait, cancel := context.WithTimeout(env.ctx, patience)
		if _, err := locks.Lock(wait, "key"); !errors.Is(err, asynclock.ErrForeignData) {
			env.Errorf("Lock: got %v, want ErrForeignData", err)
		}
		if _, err := (<-locks.LockChan(wait, "key")).Lease(); !errors.Is(err, asynclock.ErrForeignData) {
			env.Errorf("LockChan: got %v, want ErrForeignData", err)
		}
		cancel()
		if foreign.held {
			if err := lease.Renew(env.ctx, long); err != nil {
				env.Errorf("Renew of what was held before: got %v, want no error", err)
			}
		} else if _, err := locks.TryLock(env.ctx, "key"); !errors.Is(err, asynclock.ErrForeignData) {
			env.Errorf("TryLock: got %v, want ErrForeignData", err)
		}
		if after := env.dump(name); after != before {
			env.Errorf("it was changed to %q", after)
		}
		env.sends("DEL", name)
		if foreign.held {
			env.unlock(lease)
		}
	}

	// The key is as good as new.
	env.unlock(env.lock(probe, "key"))
}

// sends sends a command about one Redis key.
func (env *Env) sends(command, name string, args ...string) {
	env.Helper()
	admin := env.redis.admin
	if err := admin.Do(env.ctx, admin.B().Arbitrary(command).Keys(name).Args(args...).Build()).Error(); err != nil {
		env.Fatalf("%s %s: %v", command, name, err)
	}
}

// dump returns what is stored under a Redis key.
func (env *Env) dump(name string) string {
	env.Helper()
	admin := env.redis.admin
	kind, err := admin.Do(env.ctx, admin.B().Type().Key(name).Build()).ToString()
	if err != nil {
		env.Fatal(err)
	}
	read, ok := map[string][]string{
		"string": {"GET"}, "list": {"LRANGE", "0", "-1"}, "hash": {"HGETALL"}, "set": {"SMEMBERS"}, "zset": {"ZRANGE", "0", "-1", "WITHSCORES"},
	}[kind]
	if !ok {
		env.Fatalf("type of %q: got %q", name, kind)
	}
	value, err := admin.Do(env.ctx, admin.B().Arbitrary(read[0]).Keys(name).Args(read[1:]...).Build()).ToAny()
	if err != nil {
		env.Fatal(err)
	}
	return fmt.Sprint(kind, value)
}
