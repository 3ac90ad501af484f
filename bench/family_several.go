// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/asynclock/asynclock-go/asynclock"
)

// several is several keys, nobody else.
func several(size familySizes, keys int) (c comparison) {
	c.workload = workload{
		name: fmt.Sprintf("several %d", keys), title: fmt.Sprintf("LockAll and Unlock of %d keys, one goroutine, nobody else", keys),
		metrics: aloneMetrics, base: mutexName,
	}
	recipe := fmt.Sprintf("several %d", keys)
	c.contestants = []contestant{
		ourMutex,
		ours(asynclockPeer.name, lockingAll(keys)),
		inRedisson(redissonName, recipe, "Redisson: RedissonMultiLock of RLocks"),
		inCurator(recipe, "Curator: InterProcessMultiLock of InterProcessMutexes"),
	}
	c.targets = []target{{of: mutexName, limit: 1.5}} // it was set for 8 keys
	c.inGo, c.inJava = aloneInGo(size, c.key), aloneInJava(size)
	return c
}

func lockingAll(n int) locking {
	return locking{"asynclock: LockAll, no options", func(ctx context.Context, c *asynclock.Client, key string) (held, error) {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = key + strconv.Itoa(i)
		}
		m, err := c.LockAll(ctx, keys)
		if err != nil {
			return nil, err
		}
		return m, nil
	}}
}
