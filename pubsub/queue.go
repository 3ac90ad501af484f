// SPDX-License-Identifier: Apache-2.0

package pubsub

import "context"

// queueSize is how many calls a handler may fall behind. The package comment gives the number.
const queueSize = 1024

// A queue stands between the deliverers, which must not wait, and the handler, which may take long.
type queue struct {
	events chan event
}

// An event is one call of the handler.
type event struct {
	kind    eventKind
	payload string // of a message
	err     error  // why it went down
}

type eventKind int

const (
	message eventKind = iota
	up
	wentDown
)

func newQueue() queue { return queue{events: make(chan event, queueSize)} }

// push adds e, which is already part of the state now. It is called by one goroutine at a time and
// never blocks.
func (q queue) push(e event, now state) {
	select {
	case q.events <- e:
		return
	default:
	}
	// The queue is full. The sends below find room, because nobody else sends.
	unheard := q.drop()
	if e.kind == message {
		switch {
		case now == live:
			q.events <- event{kind: up}
		case unheard.kind == wentDown:
			q.events <- unheard
		}
	} // otherwise e itself gives the present state
	q.events <- e
}

// drop empties the queue and returns its last wentDown, if there was any.
func (q queue) drop() (unheard event) {
	for {
		select {
		case e := <-q.events:
			if e.kind == wentDown {
				unheard = e
			}
		default:
			return unheard
		}
	}
}

// dispatch calls the handler for one event after another until ctx ends.
func (q queue) dispatch(ctx context.Context, handler Handler) {
	for {
		select {
		case e := <-q.events:
			if ctx.Err() != nil {
				return // select takes either if both are ready
			}
			handler.handle(e)
		case <-ctx.Done():
			return
		}
	}
}

func (h Handler) handle(e event) {
	switch {
	case e.kind == message && h.Message != nil:
		h.Message(e.payload)
	case e.kind == up && h.Up != nil:
		h.Up()
	case e.kind == wentDown && h.Down != nil:
		h.Down(e.err)
	}
}
