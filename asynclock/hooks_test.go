// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// A witness is a client's hooks, which check what Hooks promises. Half of the clients of all stories have one.
type witness struct {
	t testing.TB

	mu      sync.Mutex
	client  *asynclock.Client
	waits   int
	waited  map[int]asynclock.WaitedEvent // by the number of the Wait
	holds   []asynclock.HoldEvent
	held    map[int]asynclock.HeldEvent // by the number of the Hold
	calls   []asynclock.CalledEvent
	outcome map[string]int
}

// A numberOf is the context key for the number of a hook's call.
type numberOf string

func newWitness(t testing.TB) *witness {
	return &witness{t: t, waited: make(map[int]asynclock.WaitedEvent), held: make(map[int]asynclock.HeldEvent), outcome: make(map[string]int)}
}

// hooks are called under no mutex: each uses the client in a way that takes all of them.
func (w *witness) hooks() asynclock.Hooks {
	return asynclock.Hooks{
		Wait: func(ctx context.Context, _ asynclock.WaitEvent) context.Context {
			defer w.use()()
			w.waits++
			return context.WithValue(ctx, numberOf("wait"), w.waits)
		},
		Waited: func(ctx context.Context, e asynclock.WaitedEvent) {
			defer w.use()()
			n, _ := ctx.Value(numberOf("wait")).(int)
			if _, twice := w.waited[n]; twice || n == 0 {
				w.t.Errorf("Waited, of the Wait with number %d: got %+v, and before that %+v", n, e, w.waited[n])
			}
			w.waited[n] = e
			w.outcome[strings.TrimSpace(e.Outcome+" "+e.Way)]++
		},
		Hold: func(ctx context.Context, e asynclock.HoldEvent) context.Context {
			defer w.use()()
			w.holds = append(w.holds, e)
			return context.WithValue(ctx, numberOf("hold"), len(w.holds))
		},
		Held: func(ctx context.Context, e asynclock.HeldEvent) {
			defer w.use()()
			n, _ := ctx.Value(numberOf("hold")).(int)
			if _, twice := w.held[n]; twice || n == 0 {
				w.t.Errorf("Held, of the Hold with number %d: got %+v, and before that %+v", n, e, w.held[n])
			}
			w.held[n] = e
		},
		Called: func(e asynclock.CalledEvent) {
			defer w.use()()
			w.calls = append(w.calls, e)
		},
	}
}

// use takes the client's mutexes, and then that of w, which the returned function gives back.
func (w *witness) use() (done func()) {
	w.mu.Lock()
	c := w.client
	w.mu.Unlock()
	c.Stats()
	w.mu.Lock()
	return w.mu.Unlock
}

// isWatched reports whether the client with this number has a witness.
func isWatched(name string, number int) bool {
	h := fnv.New32()
	h.Write([]byte(name))
	return (int(h.Sum32())+number)%2 == 0
}

// wantAllTold fails the test unless each Wait has had its Waited, each Hold its Held, and the counts agree with what was
// told.
func (w *witness) wantAllTold() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waited) != w.waits || len(w.held) != len(w.holds) {
		w.t.Errorf("hooks: got %d Wait, %d Waited, %d Hold and %d Held", w.waits, len(w.waited), len(w.holds), len(w.held))
	}
	counted, told := make(map[string]int), maps.Clone(w.outcome)
	count := func(prefix string, counts any) {
		for name, n := range numbers(counts) {
			counted[prefix+name] += n
		}
	}
	for _, a := range kinds(w.client.Stats()) {
		count("acquired ", a.Acquired)
		count("", a.Refused)
		count("", a.GivenUp)
		count("ended ", a.Ended)
	}
	for _, e := range w.holds {
		if e.Op == "downgrade" { // nobody waits for it
			told["acquired "+e.Way]++
		}
	}
	for _, e := range w.held {
		told["ended "+e.End]++
	}
	for name, n := range counted {
		// A request that is refused at once has no Wait, and a lease that nobody has looked at no Hold.
		if isLease := strings.HasPrefix(name, "acquired"); told[name] > n || isLease && told[name] < n {
			w.t.Errorf("%s: got %d counted and %d told", name, n, told[name])
		}
		delete(told, name)
	}
	if len(told) > 0 {
		w.t.Errorf("told and not counted: %v", told)
	}
}

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

// What runs under a lease has the values that the hooks have given to its context, and ends with its caller's all the same.
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

// A hook that panics is a panic of the call. Nobody is left with the key.
func TestAHookThatPanicsLeavesNoLease(t *testing.T) {
	panics := func() { panic("hook") }
	for name, hooks := range map[string]asynclock.Hooks{
		"wait":   {Wait: func(context.Context, asynclock.WaitEvent) context.Context { panics(); return nil }},
		"waited": {Waited: func(context.Context, asynclock.WaitedEvent) { panics() }},
		"hold":   {Hold: func(context.Context, asynclock.HoldEvent) context.Context { panics(); return nil }},
		"held":   {Held: func(context.Context, asynclock.HeldEvent) { panics() }},
	} {
		scene(t, name, func(w *world) {
			w.clients++
			c := w.newClient(w.store, false, asynclock.WithHooks(hooks))
			for _, call := range []func() error{
				func() error {
					return c.WithLock(w.Context(), "key", func(context.Context, *asynclock.Lease) error { return nil })
				},
				func() error {
					return c.WithLockAll(w.Context(), []string{"a", "b"}, func(context.Context, *asynclock.MultiLease) error { return nil })
				},
			} {
				func() {
					defer func() {
						if recover() == nil {
							w.Error("no panic, want that of the hook")
						}
					}()
					_ = call()
				}()
			}
			w.wait()
			w.wantUnused()
		})
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
