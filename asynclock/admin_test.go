// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

func TestForceUnlockIsAboutOneHolding(t *testing.T) {
	story(t, func(w *world) {
		holder, admin := w.client(asynclock.WithDescription("first")), w.client()
		unlock(w, lock(w, holder, "key"))
		l := lock(w, holder, "key")
		token := w.inspect("key").Token
		held, err := admin.ForceUnlock(w.Context(), "key", token-1)
		wantError(w, err, asynclock.ErrHeld)
		wantOp(w, err, "force unlock", "key")
		var by *asynclock.HeldError
		if !errors.As(err, &by) || held || by.Key != "key" || by.Holder != "first" || by.Token != token || by.Remaining <= 0 {
			w.Errorf("about another token: got %v, %+v, want who holds the key", held, by)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, "held by first with token 1048577, not with token 1048576") {
			w.Errorf("got %q, want it to name both tokens", text)
		}
		w.wait()
		wantValid(w, l)
		if held, err := admin.ForceUnlock(w.Context(), "key", token); !held || err != nil {
			w.Errorf("about the holder's token: got %v, %v, want true", held, err)
		}
		w.pass(time.Millisecond)
		wantLost(w, l, asynclock.ErrForced)
	})
}

// TestForceUnlockWithoutAnAnswerCanBeRepeated: the next holder keeps the key.
func TestForceUnlockWithoutAnAnswerCanBeRepeated(t *testing.T) {
	story(t, func(w *world) {
		holder, admin, waiter := w.client(), w.client(), w.client()
		l := lock(w, holder, "key")
		p := w.ask(w.Context(), waiter, "key")
		w.store.Next(func(c asynclocktest.Call) bool { return c.Op == asynclocktest.Force }, asynclocktest.LoseReply)
		wantError(w, errOf(admin.ForceUnlock(w.Context(), "key", l.Token())), asynclock.ErrOutcomeUnknown)
		w.pass(time.Millisecond)
		wantLost(w, l, asynclock.ErrForced)
		next := p.has()
		wantError(w, errOf(admin.ForceUnlock(w.Context(), "key", l.Token())), asynclock.ErrHeld)
		w.wait()
		wantValid(w, next)
		unlock(w, next)
		if held, err := admin.ForceUnlock(w.Context(), "key", l.Token()); held || err != nil {
			w.Errorf("repeated when nobody holds the key: got %v, %v, want false", held, err)
		}
	})
}

func TestForceUnlockRefusesTokensThatCannotBe(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		_, err := c.ForceUnlock(w.Context(), "key", -1)
		wantError(w, err, asynclock.ErrInvalidOption)
		wantOp(w, err, "force unlock", "key")
		plain := w.clientOf(altered{Store: w.memory, features: func(f *store.Features) { f.Tokens = false }})
		wantError(w, errOf(plain.ForceUnlock(w.Context(), "key", 1)), asynclock.ErrInvalidOption)
		if held, err := plain.ForceUnlock(w.Context(), "key", 0); held || err != nil {
			w.Errorf("token 0 without tokens: got %v, %v, want false", held, err)
		}
		w.wantCalls(asynclocktest.Any, 0)
	})
}

// A process that was stopped may read what happened to its key before its watchdog runs. A
// lease's time that has passed is why it ended, and not what came after.
func TestForceAfterTheDeadlineIsAnExpiry(t *testing.T) {
	circumstances := fmt.Errorf("%w: the server has restarted", asynclock.ErrExpired)
	for _, c := range []struct {
		name    string
		event   store.EventKind
		told    error
		options []asynclock.LockOption
		left    time.Duration // of the lease
		want    error
	}{
		{"before", store.EventLost, store.ErrForced, nil, time.Nanosecond, asynclock.ErrForced},
		{"after", store.EventForced, nil, nil, 0, asynclock.ErrExpired},
		{"after the maximum hold", store.EventForced, nil, []asynclock.LockOption{asynclock.WithMaxHold(ttl / 2)}, 0, asynclock.ErrMaxHold},
		{"stolen after", store.EventLost, asynclock.ErrStolen, nil, 0, asynclock.ErrExpired},
		{"expired after", store.EventLost, circumstances, nil, 0, circumstances},
	} {
		scene(t, c.name, func(w *world) {
			holder, brake := w.braked()
			l := lock(w, holder, "key", c.options...)
			owner := w.store.Calls(asynclocktest.Any)[0].Owner
			goOn := brake.pull(w)
			w.pass(time.Until(l.Deadline()) - c.left)
			w.store.Tell(0, store.Event{Kind: c.event, Owner: owner, Err: c.told})
			if err := l.Context().Err(); err == nil {
				w.Error("the lease did not end with the event")
			}
			wantLost(w, l, c.want)
			goOn()
		})
	}
}
