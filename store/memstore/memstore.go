// SPDX-License-Identifier: Apache-2.0

// Package memstore keeps locks in the memory of one process. Use it to test code that uses locks.
// It also serves programs that run in one process only and need the queueing, leases and tokens of
// package asynclock among their own goroutines.
//
// It keeps every rule of a store on a network: a first-come queue for each key, handoff to the next
// waiter at release, TTLs, fencing tokens, and requests that can be repeated. A cancelled context
// is refused as a network would refuse it, and a client that has left is skipped. Unlike a network,
// it never loses replies or messages.
//
// It starts no goroutine and sets no timer; the next request notices what has expired. Time is
// [time.Now], so a store made inside a testing/synctest bubble follows the bubble's clock. A key
// that nobody holds or waits for takes no memory, unless it has a stored limit of permits.
//
// Tokens rise for as long as the Store lives and start again from 1 in the next Store. A resource
// that outlives the process and checks tokens needs a store that also outlives it.
//
// To read the code, begin with lock.go: the state of a key and all that can happen to it. share.go
// says who may hold it together, and limit.go what a stored limit changes. txn.go is the call in which it happens.
package memstore

import (
	"fmt"
	"sync"

	"github.com/asynclock/asynclock-go/internal/tombstone"
	"github.com/asynclock/asynclock-go/store"
)

const (
	// spare is how many tokens each grant sets aside for handoffs inside the holder's client. It is
	// large enough that no client ever has to request more. A counter of 63 bits still lasts for
	// eight million million grants.
	spare = 1<<20 - 1
	// maxToken is the largest token to which a client can raise the counter, so that no request can
	// make the counter overflow.
	maxToken = 1 << 62
	// sweepPerCall is how many keys each call checks for expiry, besides its own key. With two, the
	// sweep is faster than keys can be added.
	sweepPerCall = 2
)

// A Store holds the locks of any number of clients in this process. Make one
// with [New].
type Store struct {
	mu      sync.Mutex
	locks   map[string]*lock // the keys that are held or waited for, or have a limit
	swept   []*lock          // the same ones, in any order
	cursor  int              // where in swept the sweep continues
	gone    tombstone.Owners
	notes   map[string]note
	hearers map[string][]*session // who observes a key
	counter int64                 // the last token or ticket given; one for all keys, so that forgetting a key forgets no token
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{locks: make(map[string]*lock), notes: make(map[string]note), hearers: make(map[string][]*session)}
}

// Close does nothing. A program whose store is in memory at one place, and on a server at
// another, can close either. Clients go on.
func (s *Store) Close() {}

var features = store.Features{
	Name: "memory", Tokens: true, FIFO: true, Retention: true, Shared: true, Permits: true, Limits: true, Notes: true, Announcements: true,
}

// Features says that the store has fencing tokens, queues, shares and notes, and notifies a holder of
// requests for its key.
func (s *Store) Features() store.Features { return features }

// Open connects one client. Events are called by the goroutine whose request
// caused them, before that request returns and with no lock of the store held.
func (s *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if s.locks == nil {
		return nil, fmt.Errorf("%w: memstore: a Store that New did not make", store.ErrInvalidOption)
	}
	if id == "" || events == nil {
		return nil, fmt.Errorf("%w: a session needs an id and a receiver of events", store.ErrInvalidOption)
	}
	return &session{store: s, events: events}, nil
}

// raise makes the next token larger than one that a holder used.
func (s *Store) raise(token int64) {
	s.counter = max(s.counter, min(token, maxToken))
}
