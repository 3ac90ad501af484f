// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
)

func TestInspectSaysWhoHoldsAndWhoWaits(t *testing.T) {
	story(t, func(w *world) {
		admin := w.client()
		free, err := admin.Inspect(w.Context(), "key")
		if err != nil || free.Held || free.Waiters != 0 || free.Key != "key" {
			w.Errorf("a free key: got %+v, error %v", free, err)
		}
		l := lock(w, w.client(), "key", asynclock.WithDescription("the holder"))
		w.ask(w.Context(), w.client(), "key", asynclock.WithDescription("the first"))
		w.pass(time.Second)
		w.ask(w.Context(), w.client(), "key", asynclock.WithDescription("the second"))
		w.pass(time.Second)
		info, err := admin.Inspect(w.Context(), "key")
		if err != nil {
			w.Fatal(err)
		}
		queue := []asynclock.WaiterInfo{{Holder: "the first", Age: 2 * time.Second}, {Holder: "the second", Age: time.Second}}
		if !info.Held || info.Holder != "the holder" || info.Token != l.Token() || info.Remaining != ttl-2*time.Second ||
			info.Waiters != 2 || !slices.Equal(info.Queue, queue) {
			w.Errorf("got %+v", info)
		}
	})
}

func TestListYieldsKeysByPrefix(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for _, key := range []string{"a", "a/1", "a/2", "b"} {
			lock(w, c, key)
		}
		for prefix, want := range map[string][]string{
			"": {"a", "a/1", "a/2", "b"}, "a": {"a", "a/1", "a/2"}, "a/": {"a/1", "a/2"}, "c": nil, "*": nil,
		} {
			var got []string
			for info, err := range c.List(w.Context(), prefix) {
				if err != nil {
					w.Fatal(err)
				}
				got = append(got, info.Key)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				w.Errorf("prefix %q: got %q, want %q", prefix, got, want)
			}
		}
		for _, err := range c.List(w.Context(), "") {
			if err != nil {
				w.Error(err)
			}
			break // and nothing is wrong with that
		}
	})
}

// An error about one key does not end a list, and any other does.
func TestListGoesOnAfterTheErrorOfAKey(t *testing.T) {
	story(t, func(w *world) {
		holder := w.client()
		for _, key := range []string{"a", "b", "c"} {
			lock(w, holder, key)
		}
		for _, tt := range []struct {
			named bool
			want  int
		}{{true, 3}, {false, 1}} {
			c := w.clientOf(altered{Store: w.store, listed: func(info store.Info) (store.Info, error) {
				if !tt.named {
					info.Key = ""
				}
				return store.Info{Key: info.Key}, store.ErrForeignData
			}})
			var got []string
			for info, err := range c.List(w.Context(), "") {
				wantError(w, err, asynclock.ErrForeignData)
				wantOp(w, err, "list", info.Key)
				got = append(got, info.Key)
			}
			if len(got) != tt.want {
				w.Errorf("with the key in the Info %v: got errors about %q, want %d", tt.named, got, tt.want)
			}
		}
	})
}

func TestAdminReportsWhatTheStoreSays(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Any, asynclocktest.Refuse)
		_, inspectErr := c.Inspect(w.Context(), "key")
		_, forceErr := c.ForceUnlock(w.Context(), "key", 0)
		var listErr error
		n := 0
		for _, listErr = range c.List(w.Context(), "key") {
			n++
		}
		for op, err := range map[string]error{"inspect": inspectErr, "force unlock": forceErr, "list": listErr} {
			wantError(w, err, asynclock.ErrUnreachable)
			wantOp(w, err, op, "key")
		}
		if n != 1 {
			w.Errorf("the listing went on after its error, for %d steps", n)
		}
	})
}

func TestAdminEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.store.Every(asynclocktest.Any, asynclocktest.Hang)
		for name, call := range map[string]func(context.Context) error{
			"inspect": func(ctx context.Context) error {
				_, err := c.Inspect(ctx, "key")
				return err
			},
			"force unlock": func(ctx context.Context) error {
				_, err := c.ForceUnlock(ctx, "key", 0)
				return err
			},
			"list": func(ctx context.Context) (err error) {
				for _, err = range c.List(ctx, "key") {
				}
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			before := time.Now()
			wantError(w, call(ctx), context.DeadlineExceeded)
			wantTime(w, name, time.Now(), before.Add(time.Second))
			cancel()
		}
	})
}

// A ForceUnlock of a key that passes inside a client ends that client's present
// lease; its waiters queue like anyone's.
func TestForceUnlockOfAKeyWithLocalWaiters(t *testing.T) {
	story(t, func(w *world) {
		c, admin := w.client(), w.client()
		leases := chain(w, c, 3)
		var waiting []*pending
		for i := range 3 {
			waiting = append(waiting, w.ask(w.Context(), c, "key", asynclock.WithDescription(fmt.Sprint(i))))
		}
		w.force(admin, "key")
		wantLost(w, leases[2], asynclock.ErrForced)
		for _, p := range waiting {
			leases = append(leases, p.get())
			unlock(w, p.lease)
		}
		wantRising(w, leases...)
		w.wantUnused()
	})
}
