// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A witness is a client's hooks, which check what Hooks promises. One in eight of the clients of all stories has one.
type witness struct {
	t testing.TB

	mu      sync.Mutex
	client  *asynclock.Client
	uses    int
	waits   int
	waited  map[int]asynclock.WaitedEvent // by the number of the Wait
	holds   []asynclock.HoldEvent
	held    map[int]asynclock.HeldEvent // by the number of the Hold
	calls   []asynclock.CalledEvent
	outcome map[string]int
}

// A numberOf is the context key for the number of a hook's call.
type numberOf string

func newWitness(t testing.TB) *witness {
	return &witness{t: t, waited: make(map[int]asynclock.WaitedEvent), held: make(map[int]asynclock.HeldEvent), outcome: make(map[string]int)}
}

// hooks are called under no mutex: each uses the client in a way that takes all of them.
func (w *witness) hooks() asynclock.Hooks {
	return asynclock.Hooks{
		Wait: func(ctx context.Context, _ asynclock.WaitEvent) context.Context {
			defer w.use()()
			w.waits++
			return context.WithValue(ctx, numberOf("wait"), w.waits)
		},
		Waited: func(ctx context.Context, e asynclock.WaitedEvent) {
			defer w.use()()
			n, _ := ctx.Value(numberOf("wait")).(int)
			if _, twice := w.waited[n]; twice || n == 0 {
				w.t.Errorf("Waited, of the Wait with number %d: got %+v, and before that %+v", n, e, w.waited[n])
			}
			w.waited[n] = e
			w.outcome[strings.TrimSpace(e.Outcome+" "+e.Way)]++
		},
		Hold: func(ctx context.Context, e asynclock.HoldEvent) context.Context {
			defer w.use()()
			w.holds = append(w.holds, e)
			return context.WithValue(ctx, numberOf("hold"), len(w.holds))
		},
		Held: func(ctx context.Context, e asynclock.HeldEvent) {
			defer w.use()()
			n, _ := ctx.Value(numberOf("hold")).(int)
			if _, twice := w.held[n]; twice || n == 0 {
				w.t.Errorf("Held, of the Hold with number %d: got %+v, and before that %+v", n, e, w.held[n])
			}
			w.held[n] = e
		},
		Called: func(e asynclock.CalledEvent) {
			defer w.use()()
			w.calls = append(w.calls, e)
		},
	}
}

// use sometimes takes the client's mutexes, and then that of w, which the returned function gives back.
func (w *witness) use() (done func()) {
	w.mu.Lock()
	w.uses++
	c, often := w.client, w.uses%16 == 1
	w.mu.Unlock()
	if often {
		c.Stats()
	}
	w.mu.Lock()
	return w.mu.Unlock
}

// isWatched reports whether the client with this number has a witness.
func isWatched(name string, number int) bool {
	h := fnv.New32()
	h.Write([]byte(name))
	return (int(h.Sum32())+number)%8 == 0
}

// wantAllTold fails the test unless each Wait has had its Waited, each Hold its Held, and the counts agree with what was
// told.
func (w *witness) wantAllTold() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waited) != w.waits || len(w.held) != len(w.holds) {
		w.t.Errorf("hooks: got %d Wait, %d Waited, %d Hold and %d Held", w.waits, len(w.waited), len(w.holds), len(w.held))
	}
	counted, told := make(map[string]int), maps.Clone(w.outcome)
	count := func(prefix string, counts any) {
		for name, n := range numbers(counts) {
			counted[prefix+name] += n
		}
	}
	for _, a := range kinds(w.client.Stats()) {
		count("acquired ", a.Acquired)
		count("", a.Refused)
		count("", a.GivenUp)
		count("ended ", a.Ended)
	}
	for _, e := range w.holds {
		if e.Op == "downgrade" { // nobody waits for it
			told["acquired "+e.Way]++
		}
	}
	for _, e := range w.held {
		told["ended "+e.End]++
	}
	for name, n := range counted {
		// A request that is refused at once has no Wait, and a lease that nobody has looked at no Hold.
		if isLease := strings.HasPrefix(name, "acquired"); told[name] > n || isLease && told[name] < n {
			w.t.Errorf("%s: got %d counted and %d told", name, n, told[name])
		}
		delete(told, name)
	}
	if len(told) > 0 {
		w.t.Errorf("told and not counted: %v", told)
	}
}
