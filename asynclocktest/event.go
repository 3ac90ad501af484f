// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// An Event is an event that the store had for a client.
type Event struct {
	store.Event

	Client int // the client that it is for
	At     time.Time
}

// An EventMatch picks events, as a [Match] does requests.
type EventMatch func(Event) bool

func (m EventMatch) picks(e Event) bool { return m == nil || m(e) }

// AnyEvent matches every event.
func AnyEvent(Event) bool { return true }

// Kind matches events of one kind.
func Kind(kind store.EventKind) EventMatch {
	return func(e Event) bool { return e.Kind == kind }
}

// For matches what m matches, if it is for the client with this number.
func (m EventMatch) For(client int) EventMatch {
	return func(e Event) bool { return e.Client == client && m.picks(e) }
}

// An EventFault decides what happens to one event. It must not block. It may call deliver any
// number of times, at any time, even after it has returned. Nil delivers the event.
type EventFault func(deliver func())

// Drop loses the event.
func Drop(func()) {}

// Repeat delivers the event twice.
func Repeat(deliver func()) {
	deliver()
	deliver()
}

// Delay delivers the event after d, and so after later events.
func Delay(d time.Duration) EventFault {
	return func(deliver func()) { time.AfterFunc(d, deliver) }
}

// A Mailbox keeps events until they are delivered by hand. Its Keep is an
// [EventFault]; the zero Mailbox is ready for use.
type Mailbox struct {
	mu   sync.Mutex
	kept []func()
}

// Keep keeps one event.
func (m *Mailbox) Keep(deliver func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = append(m.kept, deliver)
}

// Len returns how many events have been kept so far, delivered or not.
func (m *Mailbox) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.kept)
}

// Deliver delivers the event with this number, counted from 0 in the order in
// which they came. Each may be delivered any number of times. It reports whether
// there is one.
func (m *Mailbox) Deliver(number int) bool {
	m.mu.Lock()
	if number < 0 || number >= len(m.kept) {
		m.mu.Unlock()
		return false
	}
	deliver := m.kept[number]
	m.mu.Unlock()
	deliver()
	return true
}
