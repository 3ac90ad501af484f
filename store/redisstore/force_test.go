// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A key that is held back has the token of the holder that gave it up.
func TestForceIsAboutOneHolding(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.Hold("key", "a").Token
		a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token, HoldBack: time.Minute})
		var other *store.OtherHolderError
		for _, wrong := range []int64{1, token - 1, token + 1, 1<<63 - 1} {
			held, err := b.session.Force(t.Context(), "key", wrong)
			if !errors.As(err, &other) || held || other.Info.Token != token || other.Info.Remaining <= 0 || other.Info.Remaining > time.Minute {
				t.Errorf("Force about token %d: got %v, %v; want it refused in favor of %d", wrong, held, err, token)
			}
		}
		if held, err := b.session.Force(t.Context(), "key", token); !held || err != nil {
			t.Errorf("Force about the token of a key that is kept back: got %v, %v; want true", held, err)
		}
		if held, err := b.session.Force(t.Context(), "key", token); held || err != nil {
			t.Errorf("Force about the token of a free key: got %v, %v; want false", held, err)
		}
		b.Hold("key", "b")
		a.Wait("key", "c")
		held, err := a.session.Force(t.Context(), "key", a.Inspect("key").Token)
		if !held || err != nil {
			t.Errorf("Force about the token of a holder with a waiter: got %v, %v; want true", held, err)
		}
		a.Heard(store.EventGrant, "c") // at once: nothing is in doubt
	})
}
