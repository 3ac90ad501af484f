// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A note is written anew every keepNoteEvery. A store that has lost it shows it again after that time at the latest. It
// stays for keptNoteTTL, also when nobody holds the key.
const (
	keepNoteEvery = time.Minute
	keptNoteTTL   = 24 * time.Hour
)

// keepNote leaves text beside the lease's key, and tells observers. It does not wait for long: a server that is silent
// must not keep the command from its work. The function end has to be called. Nothing is written after it.
func (a *app) keepNote(lease *asynclock.Lease, text string) (end func()) {
	if text == "" {
		return func() {}
	}
	if err := announce(lease.Context(), lease, text); err != nil && lease.Err() == nil {
		a.complain("%v", err)
	}
	ctx, cancel := context.WithCancel(lease.Context())
	ended := make(chan struct{})
	go func() { // ends with the lease, or with end, which waits for it
		defer close(ended)
		tick := time.NewTicker(keepNoteEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = announce(ctx, lease, text) // its turn comes again
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// announce tries to write the note for a moment.
func announce(ctx context.Context, lease *asynclock.Lease, text string) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	return lease.Announce(ctx, []byte(text), keptNoteTTL)
}
