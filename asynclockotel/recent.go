// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// mostRecent is how many keys have their latest traced lease remembered.
const mostRecent = 1024

// recentHolds are the latest leases of this process that had a span, by key.
type recentHolds struct {
	mu sync.Mutex
	of map[string]recentHold
}

type recentHold struct {
	token int64
	span  trace.SpanContext
}

// note remembers a lease of the key. It forgets some other key if there are too many.
func (r *recentHolds) note(key string, h recentHold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.of[key]; !known && len(r.of) >= mostRecent {
		for other := range r.of { // in no order
			delete(r.of, other)
			break
		}
	}
	r.of[key] = h
}

// links links a span to the latest lease of the key, if it has the token; 0: whatever token it has.
func (r *recentHolds) links(key string, token int64) []trace.Link {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, ok := r.of[key]; ok && (token == 0 || token == h.token) {
		return []trace.Link{{SpanContext: h.span}}
	}
	return nil
}
