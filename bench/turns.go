// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"sync"
	"sync/atomic"
)

// turns is the clients in the order in which they had a key, each once for as long
// as it passed between its own goroutines.
type turns struct {
	last  atomic.Pointer[tenures]
	mu    sync.Mutex
	order []*tenures
}

func (t *turns) begin() {
	t.last.Store(nil)
	t.order = nil
}

// has notes who has the key, and is called by who has it.
func (t *turns) has(client *tenures) {
	if t.last.Load() == client {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.Store(client)
	t.order = append(t.order, client)
}

// unfairness is how many turns one client had, at most, between two turns of another.
// With 1 no client waited for more than one tenure of each other one, and for the
// handoffs between these. One client alone has none.
func (t *turns) unfairness(clients int) float64 {
	if clients == 1 {
		return math.NaN()
	}
	worst := 0
	meanwhile := make(map[*tenures]map[*tenures]int) // for each, the others' turns since its last
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
