// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// Each place that logs is one that leases depend on: messages, what acquires, what
// renews. All of them do their work while the handler blocks.
func TestALogHandlerThatBlocksHoldsUpNothing(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	h := kit.NewStuck(t)
	st := sv.store(t, WithLogger(h.Logger()))
	s, err := st.Open("client-0", func(store.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	q := redistest.Request("key", "a")
	var token int64
	kit.Returns(t, "the first Acquire", func() { token = s.Acquire(t.Context(), []store.AcquireRequest{q})[0].Token })
	if token == 0 {
		t.Fatal("Acquire: got no token, want the key")
	}
	sv.promote(t)
	sv.Do(t, "DEL", sv.redisKey("key", 'l'))
	kit.Returns(t, "a Renew that writes a holding anew", func() {
		if got := s.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "a", TTL: long, Token: token, Description: "a"}})[0]; got.Err != nil {
			t.Errorf("Renew: got %v, want no error", got.Err)
		}
	})
	kit.Returns(t, "an Acquire in the grace", func() {
		if got := s.Acquire(t.Context(), []store.AcquireRequest{redistest.Attempt("another", "b")})[0]; !errors.Is(got.Err, store.ErrUnreachable) {
			t.Errorf("Acquire in the grace: got %+v, want ErrUnreachable", got)
		}
	})
	kit.Returns(t, "Close", func() { _ = s.Close(t.Context()) })
	kit.Returns(t, "Close", st.Close)
	h.WantAsked(t)
}

// The same where the history is hidden, which is logged by the request that finds it.
func TestALogHandlerThatBlocksHoldsUpNoUnguardedAcquire(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t) // it has none to show
	h := kit.NewStuck(t)
	s, err := sv.newStore(t, WithLogger(h.Logger())).Open("client-0", func(store.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	kit.Returns(t, "Acquire", func() {
		if got := s.Acquire(t.Context(), []store.AcquireRequest{redistest.Request("key", "a")})[0]; got.Status != store.Granted {
			t.Errorf("Acquire: got %+v, want the key", got)
		}
	})
	kit.Returns(t, "Close", func() { _ = s.Close(t.Context()) })
	h.WantAsked(t)
}
