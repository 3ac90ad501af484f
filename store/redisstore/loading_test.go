// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A server that was started with data answers while it reads them, but does nothing yet.
// Requests fail at once, and no key that was held goes to a second holder.
func TestAServerThatReadsItsDataIsUnreachableUntilThen(t *testing.T) {
	t.Parallel()
	sv := ownServer(t, "--rdbcompression", "no")
	c := join(t, sv.newStore(t, WithoutFailoverGrace()))
	c.Hold("key", "a")
	// It answers after each 2 MB that it has read, so there is some time for it to be asked.
	for i := range 64 {
		sv.Do(t, "SETRANGE", fmt.Sprint("ballast ", i), "1000000", "x")
	}
	sv.Do(t, "SAVE")
	sv.own.Kill()

	sv.own.Args = append(sv.own.Args, "--key-load-delay", "100000") // in us
	if err := sv.own.Start(); err != nil {
		t.Fatal(err)
	}
	loading := func() bool {
		said, err := sv.Try("INFO", "persistence")
		return err == nil && strings.Contains(said, "\nloading:1")
	}
	kit.Eventually(t, "the server is reading its data", loading)
	for name, call := range map[string]func() error{
		"Acquire": func() error { return c.Acquire(redistest.Attempt("key", "b")).Err },
		"Renew": func() error {
			return c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}).Err
		},
		"Release": func() error {
			return c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0].Err
		},
		"Inspect": func() error { _, err := c.session.Inspect(t.Context(), "key"); return err },
		"Force":   func() error { _, err := c.session.Force(t.Context(), "key", 0); return err },
	} {
		var err error
		kit.Eventually(t, name+" on a connection that is not of before", func() bool {
			err = call()
			return !loading() || strings.Contains(fmt.Sprint(err), "LOADING")
		})
		if !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: got %v, want ErrUnreachable", name, err)
		}
	}
	if !loading() {
		t.Fatal("the server had read its data before it was asked everything")
	}

	_, _ = sv.Try("CONFIG", "SET", "key-load-delay", "0") // Redis 6.2 refuses that now, and takes some seconds more
	kit.Eventually(t, "the server has read its data", func() bool { return !loading() })
	c.Want(redistest.Attempt("key", "b"), store.Held)
	c.releaseHeld(store.ReleaseRequest{Key: "key", Owner: "a"})
}
