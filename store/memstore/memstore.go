// SPDX-License-Identifier: Apache-2.0

// Package memstore keeps locks in the memory of one process. It is the store
// for tests of code that uses locks, and for programs that run once and want
// the queueing, leases and tokens of [asynclock] among their own goroutines.
//
// It keeps every rule of a store on a network: a first-come queue for each key,
// handoff to the next waiter at release, TTLs, fencing tokens, and requests that
// can be repeated. A cancelled context is refused as a network would refuse it,
// and a client that left is skipped. What a network adds on top, lost replies and
// lost messages, it does not do.
//
// It starts no goroutine and sets no timer: what has expired is noticed by the
// next request. Time is [time.Now], so inside a testing/synctest bubble a store
// made there follows the bubble's clock. A key that nobody holds or waits for
// takes no memory.
//
// Tokens rise for as long as the Store lives and start again from 1 in the next
// one. A resource that outlives the process and checks tokens needs a store that
// does, too.
//
// To read the code, begin with lock.go, the state of a key and all that can happen to
// it; turn.go is the call that it happens in.
package memstore

import (
	"fmt"
	"sync"

	"github.com/asynclock/asynclock-go/internal/tombstone"
	"github.com/asynclock/asynclock-go/store"
)

const (
	// spare is how many tokens each grant sets aside for handoffs inside the
	// holder's client, so many that no client has to ask for more of them. A
	// counter of 63 bits still lasts for eight million million grants.
	spare = 1<<20 - 1
	// maxToken is the largest token that a client can raise the counter to, so
	// that no request makes it overflow.
	maxToken = 1 << 62
	// sweepPerCall is how many keys each call looks at for expiry, besides its
	// own. Two make the sweep faster than keys can be added.
	sweepPerCall = 2
)

// A Store holds the locks of any number of clients in this process. Make one
// with [New].
type Store struct {
	mu      sync.Mutex
	locks   map[string]*lock // the keys that are held or waited for
	swept   []*lock          // the same ones, in any order
	cursor  int              // where in swept the sweep goes on
	gone    tombstone.Owners
	counter int64 // the last token or ticket given; one for all keys, so that forgetting a key forgets no token
}

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{locks: make(map[string]*lock)}
}

// Features says that the store has fencing tokens and queues, and tells a holder
// who wants its key.
func (s *Store) Features() store.Features {
	return store.Features{Tokens: true, FIFO: true, Retention: true}
}

// Open connects one client. Events are called by the goroutine whose request
// caused them, before that request returns and with no lock of the store held.
func (s *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if id == "" || events == nil {
		return nil, fmt.Errorf("%w: a session needs an id and a receiver of events", store.ErrBadOption)
	}
	return &session{store: s, events: events}, nil
}

// raise makes the next token larger than one that a holder used.
func (s *Store) raise(token int64) {
	s.counter = max(s.counter, min(token, maxToken))
}
