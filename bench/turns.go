// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"sync"
	"sync/atomic"
)

// turns has the clients in the order in which they had a key. A client appears once for as long as
// the key passed between its own goroutines.
type turns struct {
	last  atomic.Pointer[tenures]
	mu    sync.Mutex
	order []*tenures
}

func (t *turns) begin() {
	t.last.Store(nil)
	t.order = nil
}

// has records the client that has the key. The holder calls it.
func (t *turns) has(client *tenures) {
	if t.last.Load() == client {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.Store(client)
	t.order = append(t.order, client)
}

// unfairness returns the largest number of turns that one client had between two turns of another.
// With 1, no client waited for more than one holding of each other client, and for the handoffs
// between them. One client alone has no value.
func (t *turns) unfairness(clients int) float64 {
	if clients == 1 {
		return math.NaN()
	}
	worst := 0
	meanwhile := make(map[*tenures]map[*tenures]int) // for each client, the others' turns since its last turn
	for _, now := range t.order {
		for waiting, others := range meanwhile {
			if waiting != now {
				others[now]++
				worst = max(worst, others[now])
			}
		}
		meanwhile[now] = make(map[*tenures]int)
	}
	return float64(worst)
}
