// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

func counterLosesNothing(env *Env) {
	const clients, goroutines, rounds = 4, 4, 10
	var counter unprotected
	var working sync.WaitGroup
	for _, locks := range env.clients(clients) {
		for range goroutines {
			working.Go(func() {
				for range rounds {
					err := locks.WithLock(env.ctx, "counter", func(context.Context, *asynclock.Lease) error {
						counter.bump()
						return nil
					})
					if err != nil {
						env.Error(err)
						return
					}
				}
			})
		}
	}
	working.Wait()
	if got, want := counter.n.Load(), int64(clients*goroutines*rounds); got != want {
		env.Errorf("counter: got %d, want %d", got, want)
	}
}

func fileLosesNothing(env *Env) {
	const processes, rounds = 3, 20
	file := filepath.Join(env.TempDir(), "counter")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		env.Fatal(err)
	}
	workers := make([]*worker, processes)
	for i := range workers {
		workers[i] = env.worker()
		workers[i].tell(order{Do: "bump", Key: "file", File: file, Rounds: rounds})
	}
	for _, c := range workers {
		c.hears()
	}
	if got, err := readNumber(file); err != nil || got != processes*rounds {
		env.Errorf("counter: got %d, %v, want %d", got, err, processes*rounds)
	}
}

func tokensRise(env *Env) {
	const clients, goroutines, rounds = 3, 3, 8
	var mu sync.Mutex
	var tokens []int64 // in the order of holding
	var working sync.WaitGroup
	for _, locks := range env.clients(clients) {
		for range goroutines {
			working.Go(func() {
				for range rounds {
					err := locks.WithLock(env.ctx, "key", func(_ context.Context, lease *asynclock.Lease) error {
						mu.Lock()
						defer mu.Unlock()
						tokens = append(tokens, lease.Token())
						return nil
					})
					if err != nil {
						env.Error(err)
						return
					}
				}
			})
		}
	}
	working.Wait()
	if got, want := len(tokens), clients*goroutines*rounds; got != want {
		env.Errorf("leases: got %d, want %d", got, want)
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			env.Errorf("token of lease %d: got %d, want more than the %d before it", i, tokens[i], tokens[i-1])
		}
	}
}

func clientsAreServedInOrder(env *Env) {
	clients := env.clients(5)
	lease := env.lock(clients[0], "key")
	pending := make([]<-chan asynclock.Result, len(clients))
	for i, locks := range clients[1:] {
		pending[i+1] = locks.LockChan(env.ctx, "key")
		env.awaitWaiters(clients[0], "key", i+1)
	}
	for i := 1; i < len(clients); i++ {
		env.unlock(lease)
		lease = env.claim(pending[i])
		for j := i + 1; j < len(clients); j++ {
			if len(pending[j]) > 0 {
				env.Errorf("client %d has its answer while client %d holds the key", j, i)
			}
		}
	}
	env.unlock(lease)
}

func thousandWaitersAreDrained(env *Env) {
	const clients, goroutines = 5, 200
	var counter unprotected
	var working sync.WaitGroup
	all := env.clients(clients)
	gate := env.lock(all[0], "key")
	for _, locks := range all {
		pending := make([]<-chan asynclock.Result, goroutines)
		for i := range pending {
			pending[i] = locks.LockChan(env.ctx, "key")
		}
		for _, future := range pending {
			working.Go(func() {
				lease, err := (<-future).Lease()
				if err != nil {
					env.Error(err)
					return
				}
				counter.bump()
				if err := lease.Unlock(env.ctx); err != nil {
					env.Error(err)
				}
			})
		}
	}
	env.awaitWaiters(all[0], "key", clients-1) // one for each client that does not hold the key
	start := time.Now()
	env.unlock(gate)
	working.Wait()
	env.Log(fmt.Sprint(clients*goroutines, " waiters drained in ", time.Since(start)))
	if got, want := counter.n.Load(), int64(clients*goroutines); got != want {
		env.Errorf("counter: got %d, want %d", got, want)
	}
}
