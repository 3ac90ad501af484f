// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// A Gate is a fence around what one process has: its memory, or files that nobody else writes. Its
// zero value is ready for use. It is safe for concurrent use, and must not be copied.
//
// A Gate forgets its tokens when the process ends. If the resource outlives the process, save the
// token together with the data, in one atomic step. When the process starts, show the saved token to
// the Gate by a [Gate.Do] that does nothing.
//
// A Gate keeps an entry for each key that it was ever shown, until it is garbage itself.
type Gate struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// An entry is the fence of one key.
type entry struct {
	inside chan struct{} // has room for one: the holder that is inside
	newest int64         // belongs to the holder that is inside
}

var errNothing = fmt.Errorf("%w: no context, or nothing to do", ErrInvalidOption)

// Do lets a holder in, and runs write while no other holder of the same key is inside. It returns
// what write returns. A [*StaleError] says that a later holder has been inside; write was not called
// then. A token counts once it is let in, whether or not write succeeds.
//
// Do waits while another holder of the key is inside, at most until ctx ends. It returns ctx's cause
// then. write is not interrupted, and should watch ctx itself. A Do inside a Do of the same key waits
// for itself. Other errors: those of [Check], and [ErrInvalidOption] if ctx or write is nil.
func (g *Gate) Do(ctx context.Context, h Holder, write func() error) error {
	if err := Check(h); err != nil {
		return err
	}
	if ctx == nil || write == nil {
		return errNothing
	}
	e := g.entry(h.Key())
	select {
	case e.inside <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-e.inside }()
	if err := Admit(h, "", e.newest); err != nil {
		return err
	}
	e.newest = h.Token()
	return write()
}

// DoAll is [Gate.Do] for all keys of h, which may be a lease of several keys. It waits for one key after the other, in the
// order of [NewStamps]. A Do inside may wait for a caller that waits for this one. A
// token counts once it is let in, whether or not those of the other keys are. Other errors: those of NewStamps.
func (g *Gate) DoAll(ctx context.Context, h Holders, write func() error) error {
	stamps, err := NewStamps(h)
	if err != nil {
		return err
	}
	if write == nil {
		return errNothing
	}
	for _, s := range slices.Backward(stamps) { // the first key is the outermost
		inner := write
		write = func() error { return g.Do(ctx, s, inner) }
	}
	return write()
}

// entry returns the fence of a key, and makes it first if need be.
func (g *Gate) entry(key string) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, known := g.entries[key]
	if !known {
		if g.entries == nil {
			g.entries = make(map[string]*entry)
		}
		e = &entry{inside: make(chan struct{}, 1)}
		g.entries[key] = e
	}
	return e
}
