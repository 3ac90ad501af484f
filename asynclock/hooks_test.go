// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A teller is hooks that say what they are told. Each adds its name to the value that a context has for the key.
type teller struct {
	client *asynclock.Client

	mu   sync.Mutex
	said []string
}

func (t *teller) say(format string, args ...any) {
	t.client.Stats() // takes all mutexes
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, fmt.Sprintf(format, args...))
}

// told returns what was said since the last time.
func (t *teller) told() string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.said = nil }()
	return strings.Join(t.said, "; ")
}

func (t *teller) hooks() asynclock.Hooks {
	passed := func(ctx context.Context) string { name, _ := ctx.Value(numberOf("passed")).(string); return name }
	pass := func(ctx context.Context, name string) context.Context {
		return context.WithValue(ctx, numberOf("passed"), passed(ctx)+name)
	}
	return asynclock.Hooks{
		Wait: func(ctx context.Context, e asynclock.WaitEvent) context.Context {
			t.say("wait: %s %s %v class=%q %v future=%t", e.Op, e.Key, e.Keys, e.Class, e.Mode, e.Future)
			return pass(ctx, "wait ")
		},
		Waited: func(ctx context.Context, e asynclock.WaitedEvent) {
			t.say("%swaited %v: %s %s", passed(ctx), e.Waited, e.Outcome, e.Way)
			if e.Blocker != 0 {
				t.say("behind %d", e.Blocker)
			}
			if (e.Err != nil) == (e.Outcome == "acquired") {
				t.say("error: %v", e.Err)
			}
		},
		Hold: func(ctx context.Context, e asynclock.HoldEvent) context.Context {
			t.say("%shold: %s %d %s", passed(ctx), e.Op, e.Token, e.Way)
			return pass(ctx, "hold ")
		},
		Held: func(ctx context.Context, e asynclock.HeldEvent) {
			t.say("%sheld %v: %d %s", passed(ctx), e.Held, e.Token, e.End)
		},
	}
}

func (t *teller) want(w *world, want string) {
	w.Helper()
	if got := t.told(); got != want {
		w.Errorf("told:\n\t%s\nwant\n\t%s", got, want)
	}
}

// told makes the next client, whose hooks say what they are told.
func (w *world) told(options ...asynclock.ClientOption) (*asynclock.Client, *teller) {
	w.Helper()
	t := new(teller)
	w.clients++
	t.client = w.newClient(w.store, false, append(options, asynclock.WithHooks(t.hooks()))...)
	return t.client, t
}

func TestHooksAreToldOfRequestsAndLeases(t *testing.T) {
	scene(t, "a call", func(w *world) {
		c, t := w.told(asynclock.WithClass("thing"))
		l := lock(w, c, "key")
		t.want(w, `wait: lock key [] class="thing" exclusive future=false; wait waited 0s: acquired at_once; wait hold: lock 1 at_once`)
		w.pass(time.Second)
		unlock(w, l)
		t.want(w, `wait hold held 1s: 1 unlocked`)
		unlock(w, l)
		t.want(w, "")
	})
	scene(t, "a call that waits for another client", func(w *world) {
		c, t := w.told()
		l := lock(w, w.client(), "key")
		p := w.ask(w.Context(), c, "key", asynclock.WithClass("other"))
		t.want(w, `wait: lock key [] class="other" exclusive future=false`)
		w.pass(time.Second)
		unlock(w, l)
		p.has()
		t.want(w, `wait waited 1s: acquired queued; behind 1; wait hold: lock 1048578 queued`)
	})
	scene(t, "a call that is refused, and one that is not made", func(w *world) {
		c, t := w.told()
		l := lock(w, c, "key")
		t.told()
		wantError(w, errOf(c.TryRLock(w.Context(), "key")), asynclock.ErrHeld)
		t.want(w, `wait: try rlock key [] class="" shared future=false; wait waited 0s: held ; behind 1`)
		wantError(w, errOf(c.Lock(l.Context(), "key")), asynclock.ErrReentry)
		wantError(w, errOf(c.Lock(w.Context(), "")), asynclock.ErrInvalidKey)
		t.want(w, "")
	})
	scene(t, "a future, whose receiver looks twice", func(w *world) {
		c, t := w.told()
		f := c.LockChan(w.Context(), "key")
		t.want(w, `wait: lock key [] class="" exclusive future=true`)
		r := <-f
		w.pass(time.Second)
		must(r.Lease())
		t.want(w, `wait waited 1s: acquired at_once; wait hold: lock 1 at_once`)
		must(r.Lease())
		t.want(w, "")
	})
	scene(t, "a future that nobody receives from", func(w *world) {
		c, t := w.told()
		lock(w, w.client(), "key")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		f := c.LockChan(ctx, "key")
		t.told()
		w.pass(2 * time.Second)
		t.want(w, `wait waited 1s: timeout ; behind 1`)
		runtime.KeepAlive(f)
	})
	scene(t, "a lease that is lost", func(w *world) {
		c, t := w.told()
		lock(w, c, "key", asynclock.WithMaxHold(time.Second))
		t.told()
		w.pass(time.Second)
		t.want(w, `wait hold held 1s: 1 max_hold`)
	})
	scene(t, "several keys", func(w *world) {
		c, t := w.told()
		m := must(c.LockAll(w.Context(), []string{"b", "a"}))
		t.want(w, `wait: lock all a [a b] class="" exclusive future=false; wait waited 0s: acquired at_once; wait hold: lock all 1 at_once`)
		wantError(w, errOf(c.TryLockAll(w.Context(), []string{"b", "c"})), asynclock.ErrHeld)
		t.want(w, `wait: try lock all b [b c] class="" exclusive future=false; wait waited 0s: held ; behind 1048577`)
		wantError(w, m.Unlock(w.Context()), nil)
		t.want(w, `wait hold held 0s: 1 unlocked`)
	})
	scene(t, "several keys by a future, of which one is lost", func(w *world) {
		c, t := w.told()
		r := <-c.LockAllChan(w.Context(), []string{"b", "a"})
		m := must(r.Lease())
		must(r.Lease())
		t.want(w, `wait: lock all a [a b] class="" exclusive future=true; wait waited 0s: acquired at_once; wait hold: lock all 1 at_once`)
		part, _ := asynclock.LeaseFrom(m.Context(), "b")
		unlock(w, part)
		t.want(w, `wait hold held 0s: 1 unlocked`)
	})
	scene(t, "a downgrade", func(w *world) {
		c, t := w.told(asynclock.WithClass("thing"))
		l := lock(w, c, "key")
		t.told()
		must(l.Downgrade(w.Context()))
		t.want(w, `wait hold held 0s: 1 unlocked; hold: downgrade 1048577 downgraded`)
	})
	scene(t, "a client that is closed with a lease", func(w *world) {
		c, t := w.told()
		lock(w, c, "key")
		t.told()
		abandon(c)
		t.want(w, `wait hold held 1s: 1 closed`)
		wantError(w, errOf(c.Lock(w.Context(), "key")), asynclock.ErrClosed)
		t.want(w, "")
	})
}

// Work under a lease has the values that the hooks have given to its context, and ends with its caller's all the same.
func TestHooksGiveValuesToTheContextsOfLeases(t *testing.T) {
	story(t, func(w *world) {
		c, _ := w.told()
		wantPassed := func(what string, ctx context.Context) {
			w.Helper()
			if got := ctx.Value(numberOf("passed")); got != "wait hold " {
				w.Errorf("the context of %s: got %v, want the values of both hooks", what, got)
			}
			if got := ctx.Value(valueKey{}); got != "mine" {
				w.Errorf("the context of %s: got %v, want the value of its caller, too", what, got)
			}
		}
		ctx, cancel := context.WithCancel(context.WithValue(w.Context(), valueKey{}, "mine"))
		defer cancel()
		wantError(w, c.WithLock(ctx, "key", func(ctx context.Context, l *asynclock.Lease) error {
			wantPassed("WithLock's function", ctx)
			wantPassed("the lease", l.Context())
			return nil
		}), nil)
		wantPassed("a future's lease", claim(w, c.LockChan(ctx, "future")).Context())
		wantPassed("a downgraded lease", must(lock(w, c, "writer").Downgrade(context.WithValue(ctx, numberOf("passed"), "wait "))).Context())
		wantError(w, c.WithLockAll(ctx, []string{"a", "b"}, func(ctx context.Context, m *asynclock.MultiLease) error {
			wantPassed("WithLockAll's function", ctx)
			wantPassed("the leases", m.Context())
			if l, ok := asynclock.LeaseFrom(ctx, "b"); !ok || l.Err() != nil {
				w.Errorf("LeaseFrom: got %v, %v, want the part", l, ok)
			}
			cancel()
			<-ctx.Done()
			return nil
		}), nil)
	})
}

// A hook may return any context, and none.
func TestHooksDoNotChangeTheEndOfContexts(t *testing.T) {
	for name, returned := range map[string]context.Context{"none": nil, "another": context.Background()} {
		scene(t, name, func(w *world) {
			w.clients++
			c := w.newClient(w.store, false, asynclock.WithHooks(asynclock.Hooks{
				Hold: func(context.Context, asynclock.HoldEvent) context.Context { return returned },
			}))
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			defer cancel()
			ends, _ := ctx.Deadline()
			wantError(w, c.WithLock(ctx, "key", func(ctx context.Context, l *asynclock.Lease) error {
				deadline, _ := ctx.Deadline()
				wantTime(w, "deadline", deadline, ends)
				<-ctx.Done()
				wantValid(w, l)
				return ctx.Err()
			}), context.DeadlineExceeded)
		})
	}
}

// Hooks of several options are called in turn. Each has the context of the one before.
func TestSeveralHooks(t *testing.T) {
	story(t, func(w *world) {
		w.clients++
		first, second := new(teller), new(teller)
		c := w.newClient(w.store, false, asynclock.WithHooks(first.hooks()), asynclock.WithHooks(asynclock.Hooks{}), asynclock.WithHooks(second.hooks()))
		unlock(w, lock(w, c, "key"))
		first.want(w, `wait: lock key [] class="" exclusive future=false; wait wait waited 0s: acquired at_once; wait wait hold: lock 1 at_once; wait wait hold hold held 0s: 1 unlocked`)
		second.want(w, `wait: lock key [] class="" exclusive future=false; wait wait waited 0s: acquired at_once; wait wait hold hold: lock 1 at_once; wait wait hold hold held 0s: 1 unlocked`)
	})
}

// A hook that panics, or ends its goroutine, does so to the call that it belongs to. Nobody is left with a key, and the
// hooks before it are told how that has ended.
func TestAHookThatDoesNotReturnLeavesNoLease(t *testing.T) {
	type call struct {
		name string
		make func(w *world, c *asynclock.Client)
	}
	calls := []call{
		{"with lock", func(w *world, c *asynclock.Client) {
			_ = c.WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error { return nil })
		}},
		{"with lock all", func(w *world, c *asynclock.Client) {
			_ = c.WithLockAll(w.Context(), []string{"a", "b"}, func(context.Context, *asynclock.MultiLease) error { return nil })
		}},
		{"future", func(w *world, c *asynclock.Client) { unlock(w, claim(w, c.LockChan(w.Context(), "key"))) }},
		{"future of several keys", func(w *world, c *asynclock.Client) {
			wantError(w, must((<-c.LockAllChan(w.Context(), []string{"a", "b"})).Lease()).Unlock(w.Context()), nil)
		}},
		{"downgrade", func(w *world, c *asynclock.Client) {
			unlock(w, must(lock(w, c, "key").Downgrade(w.Context())))
		}},
	}
	for _, last := range []string{"wait", "waited", "hold", "held", "called"} {
		for _, call := range calls {
			for way, end := range map[string]func(){"panics": func() { panic("hook") }, "ends": runtime.Goexit} {
				if way == "panics" && strings.HasPrefix(call.name, "future") && (last == "waited" || last == "called") {
					continue // on the other goroutine it ends the process, as it should
				}
				scene(t, fmt.Sprintf("%s %s in a %s", last, way, call.name), func(w *world) {
					var once sync.Once
					on := func(name string) {
						if name == last {
							once.Do(end)
						}
					}
					seen := newWitness(w)
					w.clients++
					c := w.newClient(w.store, false, asynclock.WithHooks(seen.hooks()), asynclock.WithHooks(asynclock.Hooks{
						Wait:   func(context.Context, asynclock.WaitEvent) context.Context { on("wait"); return nil },
						Waited: func(context.Context, asynclock.WaitedEvent) { on("waited") },
						Hold:   func(context.Context, asynclock.HoldEvent) context.Context { on("hold"); return nil },
						Held:   func(context.Context, asynclock.HeldEvent) { on("held") },
						Called: func(asynclock.CalledEvent) { on("called") },
					}))
					seen.client = c
					begin(w, func() (any, error) {
						defer func() { _ = recover() }()
						call.make(w, c)
						return nil, nil
					})
					w.pass(time.Second)
					if last == "held" || last == "wait" { // of a downgrade the writer's, whose lease has ended
						w.pass(2 * ttl)
					}
					for _, key := range []string{"key", "a", "b"} {
						unlock(w, lock(w, c, key))
					}
					abandon(c)
					w.wait()
					w.wantUnused()
					seen.mu.Lock()
					defer seen.mu.Unlock()
					if len(seen.waited) != seen.waits || len(seen.held) != len(seen.holds) {
						w.Errorf("the first hooks: got %d Wait, %d Waited, %d Hold and %d Held", seen.waits, len(seen.waited), len(seen.holds), len(seen.held))
					}
				})
			}
		}
	}
}

// Hooks of the other goroutine may block. Then they hold up nothing else, and Close does not wait for them for long.
func TestAHookThatBlocksHoldsUpNothing(t *testing.T) {
	story(t, func(w *world) {
		block := make(chan struct{})
		w.clients++
		c := w.newClient(w.store, false, asynclock.WithHooks(asynclock.Hooks{
			Waited: func(_ context.Context, e asynclock.WaitedEvent) {
				if e.Outcome == "canceled" {
					<-block
				}
			},
			Called: func(e asynclock.CalledEvent) {
				if e.Op == "renew" {
					<-block
				}
			},
		}))
		w.Cleanup(func() { close(block) })
		l := lock(w, c, "key")
		ctx, cancel := context.WithCancel(w.Context())
		futures := make([]<-chan asynclock.Result, 11_000)
		for i := range futures {
			futures[i] = c.LockChan(ctx, "key")
		}
		cancel()
		w.pass(ttl)
		wantValid(w, l)
		if got := c.Stats().HooksLeftOut; got < 1000 {
			w.Errorf("left out: got %d, want those above 10,000", got)
		}
		runtime.KeepAlive(futures)
		unlock(w, l)
		began := time.Now()
		if err := c.Close(w.Context()); err == nil || time.Since(began) > 3*time.Second {
			w.Errorf("Close: got error %v after %v, want one within some seconds", err, time.Since(began))
		}
	})
}

// A hook that ends its goroutine, as t.FailNow does, ends no other calls.
func TestHooksThatEndTheirGoroutineAreAllCalled(t *testing.T) {
	story(t, func(w *world) {
		var told atomic.Int32
		w.clients++
		c := w.newClient(w.store, false, asynclock.WithHooks(asynclock.Hooks{
			Waited: func(context.Context, asynclock.WaitedEvent) {
				told.Add(1)
				runtime.Goexit()
			},
		}))
		lock(w, w.client(), "key")
		ctx, cancel := context.WithCancel(w.Context())
		futures := make([]<-chan asynclock.Result, 10)
		for i := range futures {
			futures[i] = c.LockChan(ctx, "key")
		}
		cancel()
		w.wait()
		if got := told.Load(); int(got) != len(futures) {
			w.Errorf("told of %d futures, want %d", got, len(futures))
		}
		runtime.KeepAlive(futures)
	})
}

func TestHooksAreToldOfCalls(t *testing.T) {
	story(t, func(w *world) {
		var said []string
		w.clients++
		c := w.newClient(w.store, false, asynclock.WithHooks(asynclock.Hooks{Called: func(e asynclock.CalledEvent) {
			said = append(said, fmt.Sprintf("%s %d %v: %d failed, %v", e.Op, e.Size, e.Took, e.Failed, e.Err))
		}}))
		w.store.Every(asynclocktest.Renew.Any, asynclocktest.Slow(time.Millisecond, time.Millisecond))
		m := must(c.LockAll(w.Context(), []string{"a", "b"}))
		w.pass(ttl / 2)
		w.store.Every(asynclocktest.Release.On("b"), asynclocktest.Fail(asynclock.ErrDenied))
		wantError(w, m.Unlock(w.Context()), asynclock.ErrDenied)
		w.wait()
		if got, want := strings.Join(said, "; "), `acquire 2 0s: 0 failed, <nil>; renew 2 2ms: 0 failed, <nil>; release 2 0s: 1 failed, asynclock: denied by the store`; got != want {
			w.Errorf("told:\n\t%s\nwant\n\t%s", got, want)
		}
	})
}

// A caller whose lease was lost gives up what it waits for.
func TestAWaitThatALossEndsIsGivenUp(t *testing.T) {
	story(t, func(w *world) {
		c, t := w.told()
		lock(w, w.client(), "other")
		outer := lock(w, c, "key", asynclock.WithMaxHold(time.Second))
		p, f := w.ask(outer.Context(), c, "other"), c.LockChan(outer.Context(), "other")
		t.told()
		w.pass(time.Second)
		wantError(w, p.ended(), asynclock.ErrMaxHold)
		if told, want := t.told(), "wait waited 1s: canceled "; strings.Count(told, want) != 2 {
			w.Errorf("told %q, want %q of both", told, want)
		}
		w.wantCounts(c, "exclusive.acquired.at_once 1, exclusive.ended.max_hold 1, exclusive.given_up.canceled 2, exclusive.requested 3")
		runtime.KeepAlive(f)
	})
}

// A nosyError is an error of the application that looks at the client.
type nosyError struct{ client *asynclock.Client }

func (nosyError) Error() string { return "nosy" }

func (e nosyError) Is(error) bool {
	e.client.Stats() // takes all mutexes
	return false
}

// The cause of a context is the application's, and is asked nothing under a mutex.
func TestTheCauseOfAContextMayUseTheClient(t *testing.T) {
	story(t, func(w *world) {
		c, _ := w.told()
		lock(w, w.client(), "key")
		ctx, cancel := context.WithCancelCause(w.Context())
		p, f := w.ask(ctx, c, "key"), c.LockChan(ctx, "key")
		l := lock(w, c, "writer")
		cancel(nosyError{c})
		wantError(w, p.ended(), context.Canceled)
		wantError(w, errOf((<-f).Lease()), context.Canceled)
		wantError(w, errOf(l.Downgrade(ctx)), context.Canceled)
		w.wantCounts(c, "exclusive.acquired.at_once 1, exclusive.given_up.canceled 2, exclusive.held 1, exclusive.requested 3")
	})
}

// Nobody waits for the hook of a call that the client makes by itself.
func TestACalledThatBlocksHoldsUpNoFuture(t *testing.T) {
	story(t, func(w *world) {
		block := make(chan struct{})
		w.clients++
		c := w.newClient(w.store, false, asynclock.WithHooks(asynclock.Hooks{Called: func(asynclock.CalledEvent) { <-block }}))
		w.Cleanup(func() { close(block) })
		m := must((<-c.LockAllChan(w.Context(), []string{"a", "b"})).Lease())
		f := claim(w, c.LockChan(w.Context(), "key"))
		w.pass(2 * ttl)
		wantValid(w, f)
		f.UnlockChan(w.Context())
		m.UnlockChan(w.Context())
		w.wait()
		w.wantUnused()
	})
}

// Hooks are made for their client, which works already. Closed is called when the client's leases have ended and all other
// hooks have returned.
func TestHooksAreMadeForTheirClient(t *testing.T) {
	story(t, func(w *world) {
		var made []*asynclock.Client
		var told []string
		option := asynclock.WithHooksFor(func(c *asynclock.Client) (asynclock.Hooks, error) {
			made = append(made, c)
			unlock(w, lock(w, c, "key"))
			return asynclock.Hooks{
				Held:   func(context.Context, asynclock.HeldEvent) { told = append(told, "held") },
				Closed: func() { told = append(told, fmt.Sprintf("closed, %d held", c.Stats().Exclusive.Held)) },
			}, nil
		})
		c, other := w.newClient(w.store, false, option, asynclock.WithHooks(asynclock.Hooks{})), w.newClient(w.store, false, option)
		w.clients += 2
		if want := []*asynclock.Client{c, other}; !slices.Equal(made, want) {
			w.Error("hooks were not made once for each client")
		}
		if got := c.Stats().Store; got != "memory" {
			w.Errorf("Store: got %q, want memory", got)
		}
		lock(w, c, "left")
		abandon(c)
		wantError(w, c.Close(w.Context()), nil)
		if want := []string{"held", "closed, 0 held"}; !slices.Equal(told, want) {
			w.Errorf("told: got %q, want %q", told, want)
		}
	})
}

// If hooks can't be made, nothing of their client is left, and those made before learn of its end.
func TestHooksThatCannotBeMade(t *testing.T) {
	refused := errors.New("no meter")
	for name, refuse := range map[string]func() error{
		"an error":   func() error { return refused },
		"a panic":    func() error { panic(refused) },
		"its thread": func() error { runtime.Goexit(); return nil },
	} {
		scene(t, name, func(w *world) {
			var closed int
			w.clients++
			var err error
			begin(w, func() (any, error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				_, err = asynclock.New(w.store, asynclock.WithHooks(asynclock.Hooks{Closed: func() { closed++ }}),
					asynclock.WithHooksFor(func(c *asynclock.Client) (asynclock.Hooks, error) {
						lock(w, c, "left")
						return asynclock.Hooks{}, refuse()
					}))
				return nil, nil
			})
			w.pass(2 * time.Second) // Close's patience with the lease that is left
			if closed != 1 || name != "its thread" && !errors.Is(err, refused) {
				w.Errorf("got %v, and the first hook was told of the end %d times; want %v, and once", err, closed, refused)
			}
		})
	}
	scene(t, "one that closes the client", func(w *world) {
		closed := 0
		w.clients++
		c := w.newClient(w.store, false, asynclock.WithHooksFor(func(c *asynclock.Client) (asynclock.Hooks, error) {
			return asynclock.Hooks{Closed: func() { closed++ }}, c.Close(w.Context())
		}))
		if closed != 1 {
			w.Errorf("a client that its hooks have closed: the end was told %d times, want once", closed)
		}
		_, err := c.Lock(w.Context(), "key")
		wantError(w, err, asynclock.ErrClosed)
	})
	scene(t, "a request that began before", func(w *world) {
		lent := make(chan asynclock.Result, 1)
		told := 0
		w.clients++
		c := w.newClient(w.store, false, asynclock.WithHooksFor(func(c *asynclock.Client) (asynclock.Hooks, error) {
			l := lock(w, c, "key")
			future := c.LockChan(w.Context(), "key") // begins before there are hooks
			go func() { lent <- <-future }()
			w.wait()
			go func() { _ = l.Unlock(w.Context()) }()
			return asynclock.Hooks{
				Waited: func(context.Context, asynclock.WaitedEvent) { told++ },
				Hold:   func(context.Context, asynclock.HoldEvent) context.Context { told++; return nil },
				Held:   func(context.Context, asynclock.HeldEvent) { told++ },
			}, nil
		}))
		result := <-lent
		unlock(w, must(result.Lease()))
		abandon(c)
		if told != 0 {
			w.Errorf("of a request that began before: hooks were told %d times, want never", told)
		}
	})
	if _, err := asynclock.New(memstore.New(), asynclock.WithHooksFor(nil)); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("a nil function: got %v, want ErrInvalidOption", err)
	}
}
