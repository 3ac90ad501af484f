// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// Each place that logs is one that leases depend on: messages, what acquires, what
// renews. All of them do their work while the handler blocks.
func TestALogHandlerThatBlocksHoldsUpNothing(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	h := kit.NewStuck(t)
	st := sv.store(t, WithLogger(h.Logger()))
	s, err := st.Join("client-0", func(asynclock.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	q := redistest.Request("key", "a")
	var token int64
	kit.Returns(t, "the first Acquire", func() { token = s.Acquire(t.Context(), []asynclock.AcquireRequest{q})[0].First })
	if token == 0 {
		t.Fatal("Acquire: got no token, want the key")
	}
	sv.promote(t)
	sv.Do(t, "DEL", sv.redisKey("key", 'l'))
	kit.Returns(t, "a Renew that writes a holding anew", func() {
		if got := s.Renew(t.Context(), []asynclock.RenewRequest{{Key: "key", Owner: "a", TTL: long, Token: token, Holder: "a"}})[0]; got.Err != nil {
			t.Errorf("Renew: got %v, want no error", got.Err)
		}
	})
	kit.Returns(t, "an Acquire in the grace", func() {
		if got := s.Acquire(t.Context(), []asynclock.AcquireRequest{redistest.Attempt("another", "b")})[0]; !errors.Is(got.Err, asynclock.ErrUnreachable) {
			t.Errorf("Acquire in the grace: got %+v, want ErrUnreachable", got)
		}
	})
	kit.Returns(t, "Leave", func() { _ = s.Leave(t.Context()) })
	kit.Returns(t, "Close", st.Close)
	h.WantAsked(t)
}

// The same where the history is hidden, which is logged by the request that finds it.
func TestALogHandlerThatBlocksHoldsUpNoUnguardedAcquire(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t) // it has none to show
	h := kit.NewStuck(t)
	s, err := sv.newStore(t, WithLogger(h.Logger())).Join("client-0", func(asynclock.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	kit.Returns(t, "Acquire", func() {
		if got := s.Acquire(t.Context(), []asynclock.AcquireRequest{redistest.Request("key", "a")})[0]; got.Status != asynclock.Granted {
			t.Errorf("Acquire: got %+v, want the key", got)
		}
	})
	kit.Returns(t, "Leave", func() { _ = s.Leave(t.Context()) })
	h.WantAsked(t)
}
