// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

// commands counts the cost of a hot key on the wire: all commands of all clients, divided by how
// often the key changes hands.
func commands(size sizes, clients int) workload {
	return workload{
		name:    fmt.Sprintf("commands %d", clients),
		title:   fmt.Sprintf("Commands per handoff: one hot key, %d clients with a goroutine each", clients),
		metrics: []metric{{Name: "commands", Unit: "per lock"}},
		rounds:  max(size.rounds/4, 1),
		leaveOut: func(p peer) string {
			if p.is.etcd {
				return "it does not speak to Redis"
			}
			return waits(p)
		},
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			m := new(meter)
			w.dial = m.dial
			c, err := newCrowd(ctx, w, p, clients, 1, size.window)
			if err == nil {
				c.key = func(int) string { return "bench:commands:" + p.name }
			}
			return &countedCrowd{c, m}, err
		},
	}
}

type countedCrowd struct {
	*crowd
	meter *meter
}

func (c *countedCrowd) round(ctx context.Context) ([]float64, error) {
	before := c.meter.commands.Load()
	if _, err := c.lockFor(ctx); err != nil {
		return nil, err
	}
	total := 0
	for _, m := range c.members {
		total += m.locks + 1 // each gets the key once more after the window
	}
	return []float64{float64(c.meter.commands.Load()-before) / float64(total)}, nil
}
