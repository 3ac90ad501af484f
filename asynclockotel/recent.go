// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// mostRecent is how many keys have their latest traced lease remembered.
const mostRecent = 1024

// recentHolds are the latest leases of a client that had a span, by key.
type recentHolds struct {
	mu sync.Mutex
	of map[string]recentHold
}

type recentHold struct {
	token int64
	span  trace.SpanContext
}

// note remembers a lease of the key. It forgets some other key if there are too many. Of leases with one token, as by re-entry,
// the first is remembered.
func (r *recentHolds) note(key string, h recentHold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.of[key]
	if known && old.token == h.token {
		return
	}
	if !known && len(r.of) >= mostRecent {
		for other := range r.of { // in no order
			delete(r.of, other)
			break
		}
	}
	r.of[key] = h
}

// links links a span to the lease of the key with the token, if it is remembered.
func (r *recentHolds) links(key string, token int64) []trace.Link {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.of[key]; ok && token == h.token {
		return []trace.Link{{SpanContext: h.span}}
	}
	return nil
}
