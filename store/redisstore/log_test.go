// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// A newcomer's first lock, on a server that has just started, is to say why it waits.
func TestAFreshServersFirstLineSaysWhyNothingIsGranted(t *testing.T) {
	sv := ownServer(t)
	written := kit.DefaultLog(t)
	st, err := Open(sv.Option, WithPrefix(sv.prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	c := join(t, st)
	for _, key := range []string{"key", "key2", "key3"} { // of several buckets
		if got := c.Acquire(redistest.Attempt(key, "a")); !errors.Is(got.Err, store.ErrGrace) {
			t.Fatalf("%s: got %+v, want ErrGrace", key, got)
		}
	}
	st.log.Close()
	got := written.String()
	for _, want := range []string{"level=WARN", "nothing is granted yet", "for=", "started or promoted lately", "without data", "redisstore.WithoutFailoverGrace"} {
		if !strings.Contains(got, want) {
			t.Errorf("log: got %q, want %q in it", got, want)
		}
	}
	if n := strings.Count(got, "\n"); n != 1 {
		t.Errorf("log: got %d lines, want one:\n%s", n, got)
	}
}

// The server's age is whole seconds, and a bucket's grace begins when the bucket is first used: after
// the end of one grace there may be a rest of another.
func TestAGraceIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var written kit.Journal
		s, err := newSettings([]Option{WithLogger(written.Logger(slog.LevelWarn))})
		if err != nil {
			t.Fatal(err)
		}
		st := &Store{settings: s, log: s.log.Open()}
		lines := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if got := strings.Count(written.String(), "\n"); got != want {
				t.Errorf("%s: got %d lines, want %d", when, got, want)
			}
		}
		st.graceSeen(15 * time.Second)
		lines(1, "at first")
		time.Sleep(15 * time.Second)
		st.graceSeen(time.Second) // another bucket
		lines(1, "15 s later")
		time.Sleep(15 * time.Second)
		st.graceSeen(15 * time.Second) // one that nobody has used before
		lines(1, "30 s later")
		time.Sleep(31 * time.Second)
		st.graceSeen(15 * time.Second) // another failover
		lines(2, "a minute later")
		st.log.Close()
	})
}

func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	kit.LogOptions(t, WithLogger, WithoutLogger, func(_ *testing.T, options []Option) error {
		s, err := newSettings(options)
		kit.Warn(s.log.Open())
		return err
	})
}
