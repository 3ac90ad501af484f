// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A leftover is a way to take "key", and returns all that the program keeps of it.
type leftover struct {
	name string
	of   func(ctx context.Context, c *asynclock.Client) any
	told int // how many leases are told of
}

// leftovers are what is left of a lease that nobody unlocks.
var leftovers = []leftover{
	{"nothing", leaves(func(*asynclock.Lease) any { return nil }), 1},
	{"its token", leaves(func(l *asynclock.Lease) any { return l.Token() }), 1},
	{"the lease", leaves(func(l *asynclock.Lease) any { return l }), 0},
	{"its context", leaves(func(l *asynclock.Lease) any { return l.Context() }), 0},
	{"a method", leaves(func(l *asynclock.Lease) any { return l.Unlock }), 0},
	{"a child with a value", leaves(func(l *asynclock.Lease) any { return context.WithValue(l.Context(), valueKey{}, 1) }), 0},
	{"a child with a timer", leaves(func(l *asynclock.Lease) any {
		ctx, cancel := context.WithTimeout(l.Context(), time.Hour)
		_ = cancel // nobody does
		return ctx.Done()
	}), 0},
	{"Done", leaves(func(l *asynclock.Lease) any { return l.Done() }), 0},
	{"Done of its context", leaves(func(l *asynclock.Lease) any { return l.Context().Done() }), 0},
	{"Done of a child with a value", leaves(func(l *asynclock.Lease) any {
		return context.WithValue(l.Context(), valueKey{}, 1).Done()
	}), 0},
	{"Done of a child with an end", leaves(func(l *asynclock.Lease) any {
		ctx, cancel := context.WithCancel(l.Context())
		_ = cancel // nobody does
		return ctx.Done()
	}), 0},
	{"a function for its end", leaves(func(l *asynclock.Lease) any {
		context.AfterFunc(l.Context(), func() {})
		return nil
	}), 0},
	{"a child that has ended", leaves(func(l *asynclock.Lease) any {
		ctx, cancel := context.WithCancel(l.Context())
		cancel()
		return ctx
	}), 0},
	{"Done of a child that has ended", leaves(func(l *asynclock.Lease) any {
		ctx, cancel := context.WithCancel(l.Context())
		cancel()
		return ctx.Done()
	}), 1},
	{"an announcement", leaves(func(l *asynclock.Lease) any { return l.Announce(context.Background(), nil, time.Hour) }), 1},
	{"a goroutine that waits for its end", leaves(func(l *asynclock.Lease) any {
		go func() { <-l.Done() }()
		return nil
	}), 0},
	{"its end: it was unlocked", leaves(func(l *asynclock.Lease) any { return l.Unlock(context.Background()) }), 0},
	{"its end: it is not renewed", func(ctx context.Context, c *asynclock.Client) any {
		_, err := c.Lock(ctx, "key", asynclock.WithRenewal(false))
		return err
	}, 0},
	{"a lease under its context", leaves(func(l *asynclock.Lease) any {
		inner, _ := clientOf(l).Lock(l.Context(), "inner")
		return inner
	}), 0},
	{"nothing, and a forgotten lease under its context", leaves(func(l *asynclock.Lease) any {
		_, _ = clientOf(l).Lock(l.Context(), "inner")
		return nil
	}), 2},
	{"its reader", leaves(func(l *asynclock.Lease) any {
		reader, _ := l.Downgrade(context.Background())
		return reader
	}), 0},
	{"nothing of its reader", leaves(func(l *asynclock.Lease) any {
		_, err := l.Downgrade(context.Background())
		return err
	}), 1},
	{"nothing of several keys", func(ctx context.Context, c *asynclock.Client) any {
		_, err := c.LockAll(ctx, []string{"key", "other"})
		return err
	}, 1},
	{"the context of several keys", func(ctx context.Context, c *asynclock.Client) any {
		l, _ := c.LockAll(ctx, []string{"key", "other"})
		return l.Context()
	}, 0},
	{"Done of several keys", func(ctx context.Context, c *asynclock.Client) any {
		l, _ := c.LockAll(ctx, []string{"key", "other"})
		return l.Done()
	}, 0},
	{"a future that nobody receives", func(ctx context.Context, c *asynclock.Client) any { return c.LockChan(ctx, "key") }, 0},
	{"a result that nobody looked at", func(ctx context.Context, c *asynclock.Client) any { return <-c.LockChan(ctx, "key") }, 0},
	{"nothing of a result", func(ctx context.Context, c *asynclock.Client) any { return (<-c.LockChan(ctx, "key")).Key() }, 1},
	{"nothing of a lease by a future", func(ctx context.Context, c *asynclock.Client) any {
		_, err := (<-c.LockChan(ctx, "key")).Lease()
		return err
	}, 1},
	{"nothing of a result of several keys", func(ctx context.Context, c *asynclock.Client) any {
		return (<-c.LockAllChan(ctx, []string{"key", "other"})).Keys()
	}, 1},
	{"nothing of a lease whose context another future has had", func(ctx context.Context, c *asynclock.Client) any {
		l, err := c.Lock(ctx, "key")
		if err != nil {
			return err
		}
		under, cancel := context.WithCancel(l.Context())
		c.LockAllChan(under, []string{"a", "b"})
		kept := c.LockAllChan(ctx, []string{"a", "b"})
		cancel()
		return kept
	}, 1},
	{"nothing of results of LockEach", func(ctx context.Context, c *asynclock.Client) any {
		results := c.LockEach(ctx, keysFor(3))
		_ = (<-results).Key()
		_, err := (<-results).Lease()
		return err
	}, 2},
	{"nothing of a permit and of two readers", func(ctx context.Context, c *asynclock.Client) any {
		s, _ := c.Semaphore("permits", 2)
		_, _ = s.Acquire(ctx, 1)
		_, _ = c.RLock(ctx, "key")
		_, _ = c.RLock(ctx, "key")
		return nil
	}, 3},
	{"nothing of WithLock", func(ctx context.Context, c *asynclock.Client) any {
		return c.WithLock(ctx, "key", func(context.Context, *asynclock.Lease) error {
			runtime.GC()
			time.Sleep(3 * time.Second)
			return nil
		})
	}, 0},
}

func leaves(of func(l *asynclock.Lease) any) func(context.Context, *asynclock.Client) any {
	return func(ctx context.Context, c *asynclock.Client) any {
		l, err := c.Lock(context.WithValue(ctx, clientKey{}, c), "key")
		if err != nil {
			return err
		}
		return of(l)
	}
}

type clientKey struct{}

func clientOf(l *asynclock.Lease) *asynclock.Client {
	return l.Context().Value(clientKey{}).(*asynclock.Client)
}

// collect lets the collector take all that nobody refers to, and the client look at that.
func collect(w *world) {
	for range 8 {
		runtime.GC()
		for range 100 {
			runtime.Gosched() // cleanups run on a goroutine outside of the bubble
		}
		w.pass(2 * time.Second)
	}
}

// detecting returns a client that warns of forgotten leases.
func (w *world) detecting(log *notebook) *asynclock.Client {
	w.Helper()
	w.clients++
	// A witness would keep the context of each request until its lease has ended, and with that the lease around it.
	return w.newClient(w.store, false, asynclock.WithLeakDetection(true), log.option(slog.LevelWarn))
}

func TestForgottenLeasesAreTold(t *testing.T) {
	for _, left := range leftovers {
		scene(t, left.name, func(w *world) {
			var log notebook
			c := w.detecting(&log)
			kept := make(chan any, 1)
			go func() { kept <- left.of(w.Context(), c) }() // nothing stays on the stack of the story
			w.wait()
			held := w.inspect("key").Held
			collect(w)
			if err, ok := (<-kept).(error); ok {
				w.Fatal(err)
			}
			kept <- nil
			if told := strings.Count(log.String(), "forgotten"); told != left.told {
				w.Errorf("told of %d leases, want %d:\n%s", told, left.told, log.String())
			}
			if left.told > 0 {
				log.wantLine(w, "level=WARN", "leak_test.go:", "key=", "age=")
			}
			if !strings.Contains(left.name, "its end") && !strings.Contains(left.name, "of WithLock") && w.inspect("key").Held != held {
				w.Error("the key was given back")
			}
		})
	}
}

// Somebody who waits for the end of a lease hears of it, although the client does not keep the channel.
func TestDoneOfAWatchedLease(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		c := w.detecting(&log)
		l, whole := lock(w, c, "key"), lockAll(w, c, []string{"a", "b"})
		dones := map[string]<-chan struct{}{
			"Done": l.Done(), "of the context": l.Context().Done(), "of the whole": whole.Done(), "of its context": whole.Context().Done(),
		}
		if dones["Done"] != dones["of the context"] || dones["of the whole"] != dones["of its context"] {
			w.Error("two calls of Done return two channels")
		}
		child, cancel := context.WithCancel(l.Context())
		defer cancel()
		collect(w)
		unlock(w, l)
		unlockAll(w, whole)
		for name, done := range dones {
			select {
			case <-done:
			default:
				w.Errorf("%s: the channel is open after the end", name)
			}
		}
		if !errors.Is(context.Cause(child), asynclock.ErrUnlocked) || !errors.Is(context.Cause(l.Context()), asynclock.ErrUnlocked) {
			w.Errorf("causes: got %v and %v", context.Cause(child), context.Cause(l.Context()))
		}
		late := lock(w, c, "late")
		unlock(w, late)
		<-late.Done()
	})
}

// A key that was taken back from a future was never anybody's.
func TestWhatLayIsNotForgotten(t *testing.T) {
	story(t, func(w *world) {
		var log notebook
		ours, theirs := w.detecting(&log), w.client()
		results := ours.LockEach(w.Context(), keysFor(2))
		future := ours.LockChan(w.Context(), "key")
		for range 3 {
			w.wait()
			for _, key := range []string{"0", "key"} {
				unlock(w, lock(w, theirs, key))
			}
			collect(w)
		}
		kept := []*asynclock.Lease{claim(w, results), claim(w, results), claim(w, future)}
		collect(w)
		for _, l := range kept {
			unlock(w, l)
		}
		if strings.Contains(log.String(), "forgotten") {
			w.Error(log.String())
		}
	})
}

// A store for tests turns the detection on, and nothing else does.
func TestLeaksAreDetectedWhereAsked(t *testing.T) {
	on, off := asynclock.WithLeakDetection(true), asynclock.WithLeakDetection(false)
	for name, c := range map[string]struct {
		store   func() asynclock.Store
		options []asynclock.ClientOption
		want    bool
	}{
		"asynclocktest":      {func() asynclock.Store { return asynclocktest.New() }, nil, true},
		"asynclocktest, off": {func() asynclock.Store { return asynclocktest.New() }, []asynclock.ClientOption{off}, false},
		"memstore":           {func() asynclock.Store { return memstore.New() }, nil, false},
		"memstore, on":       {func() asynclock.Store { return memstore.New() }, []asynclock.ClientOption{on}, true},
	} {
		scene(t, name, func(w *world) {
			var log notebook
			locks, err := asynclock.New(c.store(), append(c.options, log.option(slog.LevelWarn))...)
			if err != nil {
				w.Fatal(err)
			}
			lock(w, locks, "key")
			collect(w)
			if got := strings.Contains(log.String(), "forgotten"); got != c.want {
				w.Errorf("told: got %v, want %v", got, c.want)
			}
			abandon(locks)
		})
	}
}
