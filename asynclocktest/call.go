// SPDX-License-Identifier: Apache-2.0

package asynclocktest

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// An Op is a kind of request.
type Op int

// The kinds of request, as the methods of [store.Session], [store.NoteSession] and others.
const (
	_ Op = iota
	Acquire
	Renew
	Release
	Inspect
	List
	Force
	Close
	SetLimit // of [store.LimitSession]
	WriteNote
	ReadNote
	AnnounceEnd // of [store.ObserveSession]
)

// A Call is one request: an element of a batch, where there are batches.
type Call struct {
	Client int // the client that asks, counted from 0 in the order of Open
	Op     Op
	Key    string // the prefix, for List
	Owner  string
	At     time.Time

	// The whole request, of Acquire, Renew, Release or WriteNote.
	Acquire store.AcquireRequest
	Renew   store.RenewRequest
	Release store.ReleaseRequest
	Note    store.NoteRequest
}

// A Match picks requests; nil picks all of them. It may call the methods of the [Store], and may be
// called more than once for one request.
type Match func(Call) bool

func (m Match) picks(c Call) bool { return m == nil || m(c) }

// Any matches every request.
func Any(Call) bool { return true }

// On matches requests of this kind for the key.
func (o Op) On(key string) Match {
	return func(c Call) bool { return c.Op == o && c.Key == key }
}

// Any matches requests of this kind.
func (o Op) Any(c Call) bool { return c.Op == o }

// From matches requests of this kind by the client with this number.
func (o Op) From(client int) Match { return Match(o.Any).From(client) }

// From matches what m matches, if the client with this number asks.
func (m Match) From(client int) Match {
	return func(c Call) bool { return c.Client == client && m.picks(c) }
}

// Where matches what both m and also match.
func (m Match) Where(also Match) Match {
	return func(c Call) bool { return m.picks(c) && also.picks(c) }
}
