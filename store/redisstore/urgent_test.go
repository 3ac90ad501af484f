// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redistest"
)

// A grant does not wait behind messages that nobody waits for, whatever these take.
func TestGrantsGoAheadOfOtherMessages(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		gate, granted := make(chan struct{}), make(chan asynclock.Event, 1)
		joined, err := sv.store(t).Join("me", func(e asynclock.Event) {
			switch e.Kind {
			case asynclock.EventContended:
				<-gate
			case asynclock.EventGrant:
				granted <- e
			default: // Up
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		s := joined.(*session)
		defer s.Leave(t.Context()) //nolint:errcheck // looked at elsewhere
		defer close(gate)
		redistest.Eventually(t, "the inbox works", s.classic.Load().Live)
		for _, payload := range []string{"c owner", "g owner 7 1000 0 1"} {
			sv.Do(t, "PUBLISH", s.classic.Load().channel.name, payload)
		}
		select {
		case e := <-granted:
			if e.Grant.First != 7 {
				t.Errorf("the grant's token: got %d, want 7", e.Grant.First)
			}
		case <-time.After(10 * time.Second):
			t.Error("the grant waits behind the message before it")
		}
	})
}
