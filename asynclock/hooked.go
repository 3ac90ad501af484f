// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/internal/batch"
	"github.com/asynclock/asynclock-go/watchdog"
)

// maxHooksWaiting is how many calls of hooks may wait for the goroutine that makes them.
const maxHooksWaiting = 10_000

// hooks are those of a client. Nil hooks are called by nobody.
type hooks struct {
	made atomic.Pointer[[]Hooks]
	mu   sync.Mutex
	over bool // no hook is called any more

	calls   *batch.Queue[func()] // on the other goroutine
	waiting atomic.Int64
	leftOut atomic.Int64
	closed  atomic.Bool
}

// newHooks makes room for n hooks.
func newHooks(n int) *hooks {
	if n == 0 {
		return nil
	}
	h := new(hooks)
	h.calls = batch.New(maxHooksWaiting, 1, 0, h.callAll)
	return h
}

// makeFor makes the client's hooks. Those that were made before another fails learn of the client's end.
func (h *hooks) makeFor(c *Client, all []func(*Client) (Hooks, error)) error {
	var made []Hooks
	defer func() { // also if one panics
		h.mu.Lock()
		h.made.Store(&made)
		over := h.over
		h.mu.Unlock()
		if over {
			h.tellClosed() // one of the functions has closed the client
		}
	}()
	for _, hooks := range all {
		one, err := hooks(c)
		if err != nil {
			return err
		}
		made = append(made, one)
	}
	return nil
}

// all are the hooks; none before they are made.
func (h *hooks) all() []Hooks {
	if h == nil {
		return nil
	}
	if made := h.made.Load(); made != nil {
		return *made
	}
	return nil
}

// callAll makes the calls one after the other. A hook may end its goroutine, as t.FailNow does.
func (h *hooks) callAll(_ int, calls []func()) {
	for len(calls) > 0 {
		ended := make(chan struct{})
		go func() { // ends with the last call, or with one that ends it
			defer close(ended)
			for len(calls) > 0 {
				call := calls[0]
				calls = calls[1:]
				h.waiting.Add(-1)
				call()
			}
		}()
		<-ended
	}
}

// later calls the function on the other goroutine. It may be called under any mutex.
func (h *hooks) later(call func()) {
	if h.waiting.Add(1) <= maxHooksWaiting && h.calls.Add(0, call) {
		return
	}
	h.waiting.Add(-1)
	h.leftOut.Add(1) // the client is closed, or hooks are slow
}

// end says that no request is told of any more. Calls of hooks that wait are still made.
func (h *hooks) end() {
	if h != nil {
		h.closed.Store(true)
	}
}

// close waits for the calls of hooks, and tells those that want to know of the end.
func (h *hooks) close() {
	if h == nil {
		return
	}
	h.calls.Close()
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.tellClosed()
}

func (h *hooks) tellClosed() {
	for _, hook := range h.all() {
		if hook.Closed != nil {
			hook.Closed()
		}
	}
}

func (h *hooks) numberLeftOut() int64 {
	if h == nil {
		return 0
	}
	return h.leftOut.Load()
}

// called calls Called. A caller waits for the answer, or nobody does.
func (h *hooks) called(op string, began watchdog.Instant, byCaller bool, size int, errOf func(i int) error) {
	if h == nil || size == 0 { // the store has panicked
		return
	}
	if tell := h.answered(op, began, size, errOf); byCaller {
		tell()
	} else {
		h.later(tell)
	}
}

// answered returns what calls Called.
func (h *hooks) answered(op string, began watchdog.Instant, size int, errOf func(i int) error) (tell func()) {
	if h == nil {
		return func() {}
	}
	e := CalledEvent{Op: op, Size: size, Took: watchdog.Refresh().Sub(began)}
	for i := range size {
		if err := errOf(i); err != nil {
			if e.Failed++; e.Failed == 1 {
				e.Err = err
			}
		}
	}
	return func() {
		for _, hook := range h.all() {
			if hook.Called != nil {
				hook.Called(e)
			}
		}
	}
}

// orUnlock unlocks the lease if a hook that f calls does not return.
func orUnlock[L interface {
	UnlockChan(ctx context.Context) <-chan error
}](l L, f func()) {
	returned := false
	defer func() {
		if !returned {
			l.UnlockChan(context.Background())
		}
	}()
	f()
	returned = true
}

// A valuesContext ends like one context, and has the values of another.
type valuesContext struct {
	context.Context //nolint:containedctx // the end, and what it was made under

	values context.Context //nolint:containedctx // all other values
}

// withValues returns ctx with the values of what a hook has returned, which may be any context, or none.
func withValues(ctx, values context.Context) context.Context {
	if values == nil {
		return ctx
	}
	return valuesContext{ctx, values}
}

func (c valuesContext) Value(key any) any {
	if key == (innermost{}) {
		return c.Context.Value(key)
	}
	return c.values.Value(key)
}

// A laterValues has the values of a context that is known later.
type laterValues struct {
	context.Context //nolint:containedctx // until then

	later atomic.Pointer[context.Context]
}

func (v *laterValues) become(ctx context.Context) { v.later.Store(&ctx) }

func (v *laterValues) Value(key any) any {
	if ctx := v.later.Load(); ctx != nil {
		return (*ctx).Value(key)
	}
	return v.Context.Value(key)
}
