// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A dialer may hang, and ignore its context. Open returns at its DialTimeout. With New, calls and subscriptions end, and no
// more dials begin than there may be.
func TestADialerThatHangsIsBounded(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	var hanging atomic.Int64
	options := &redis.Options{Addr: "127.0.0.1:1", DialTimeout: 20 * time.Millisecond, Dialer: func(context.Context, string, string) (net.Conn, error) {
		hanging.Add(1)
		defer hanging.Add(-1)
		<-free
		return nil, errors.New("at last")
	}}
	defer kit.Eventually(t, "nothing hangs any more", func() bool { return hanging.Load() == 0 })
	defer close(free)
	kit.Returns(t, "Open", func() {
		if _, err := Open(options); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("Open: got %v, want ErrUnreachable", err)
		}
	})
	before := hanging.Load()
	client := redis.NewClient(options)
	defer client.Close()
	st := newStore(t, client)
	c := redistest.Join(t, st, store.EventResync, store.EventDisconnected)
	kit.Returns(t, "calls", func() {
		for range 3 * dialsAtOnce {
			if err := c.Acquire(redistest.Attempt("key", "owner")).Err; !errors.Is(err, store.ErrUnreachable) {
				t.Fatalf("got %v, want ErrUnreachable", err)
			}
		}
	})
	if got := hanging.Load() - before; got > dialsAtOnce {
		t.Errorf("got %d dials that hang, want %d at most", got, dialsAtOnce)
	}
}
