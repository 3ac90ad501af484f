// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// A span is from when to when something was done.
type span struct{ Begin, End time.Time }

// meets reports whether s has a moment in common with one of the spans, which are
// in order and apart from each other.
func (s span) meets(spans []span) bool {
	i, _ := slices.BinarySearchFunc(spans, s.Begin, func(other span, t time.Time) int { return other.End.Compare(t) })
	return i < len(spans) && !spans[i].Begin.After(s.End)
}

// total is how long the spans are together.
func total(spans []span) (sum time.Duration) {
	for _, s := range spans {
		sum += s.End.Sub(s.Begin)
	}
	return sum
}

// renew is what the process does that holds the keys of a renewal round: it says
// when it has them, and after a third of the TTL, in which each is renewed once,
// what it did.
func renew(ctx context.Context, w world, keys int) error {
	m := new(meter)
	w.dial = m.dial
	k, err := newKeeping(ctx, asynclockPeer, w)
	if err != nil {
		return err
	}
	leases, err := k.take(ctx, keys)
	if err != nil {
		return err
	}
	fmt.Println("held")
	commands := m.commands.Load()
	k.renewals.forget()
	select {
	case <-time.After(w.ttl / 3):
	case <-ctx.Done():
		return ctx.Err()
	}
	said := renewalRound{Commands: int(m.commands.Load() - commands)}
	said.Spans, said.Keys, said.Renewals = k.renewals.done()
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		return err
	}
	for _, l := range leases { // or else the next round would find them held
		go func() { _ = l.Unlock(context.WithoutCancel(ctx)) }()
	}
	return k.worker.(*asynclockClient).close(ctx)
}
