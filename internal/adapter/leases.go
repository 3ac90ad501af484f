// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"errors"
	"slices"
	"sync"

	"github.com/asynclock/asynclock-go/asynclock"
)

// ErrNotLocked is the error of an Unlock without a lease.
var ErrNotLocked = errors.New("not locked by this locker")

// Leases are the leases behind an interface whose Unlock has a name instead of a lease. The zero
// Leases are none. They are safe for concurrent use.
//
// A name usually has one lease. If a lease is lost while its holder is at work, another caller of the
// process may get the next one. Nobody can tell then whose Unlock comes first. So each Unlock takes the
// oldest lease, and the key stays locked until both have come.
type Leases struct {
	mu   sync.Mutex
	held map[string][]*asynclock.Lease
}

// Add keeps a lease under a name.
func (l *Leases) Add(name string, lease *asynclock.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string][]*asynclock.Lease)
	}
	l.held[name] = append(l.held[name], lease)
}

// Take removes the oldest lease of a name, and returns nil if there is none.
func (l *Leases) Take(name string) *asynclock.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.held[name]
	switch len(all) {
	case 0:
		return nil
	case 1:
		delete(l.held, name)
	default:
		l.held[name] = all[1:]
	}
	return all[0]
}

// Oldest returns the oldest lease of a name, and whether there is no other. It is nil if there is none.
func (l *Leases) Oldest(name string) (lease *asynclock.Lease, alone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.held[name]
	if len(all) == 0 {
		return nil, false
	}
	return all[0], len(all) == 1
}

// Replace puts a lease in the place of another, and reports false if that one is not there any more.
func (l *Leases) Replace(name string, before, after *asynclock.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.held[name], before)
	if i < 0 {
		return false
	}
	l.held[name][i] = after
	return true
}
