// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestLockEachYieldsOneResultForEachKey(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		blocked := lock(w, w.client(), "3")
		keys := make([]string, 100)
		for i := range keys {
			keys[i] = strconv.Itoa(i)
		}
		keys[7] = ""    // refused
		keys[8] = "100" // twice: the second waits for the first
		keys = append(keys, "100")
		results := c.LockEach(w.Context(), slices.Values(keys))
		got := make(map[string]int)
		leases := make(map[string]*asynclock.Lease)
		take := func() {
			r := <-results
			got[r.Key()]++
			l, err := r.Lease()
			if r.Key() == "" {
				wantError(w, err, asynclock.ErrInvalidKey)
				return
			}
			if err != nil {
				w.Fatal(err)
			}
			if l.Key() != r.Key() {
				w.Errorf("the result of %q has a lease of %q", r.Key(), l.Key())
			}
			leases[r.Key()] = l
			_, _ = r.Lease() // asks for no further key
		}
		for range len(keys) - 2 {
			w.wait()
			if asked := w.calls(asynclocktest.Acquire.Any); asked > 32+len(leases)+1 {
				w.Fatalf("%d keys were requested, and %d received; want 32 in advance at most", asked, len(leases))
			}
			take()
		}
		unlock(w, blocked)
		take()
		unlock(w, leases["100"])
		take()
		for _, l := range leases {
			unlock(w, l)
		}
		for _, key := range keys {
			want := 1
			if key == "100" {
				want = 2
			}
			if got[key] != want {
				w.Errorf("key %q: %d results, want %d", key, got[key], want)
			}
		}
		w.wantUnused()
	})
}

// Results that share a channel and that nobody receives stay there, and give way to another client.
func TestLockEachGivesWay(t *testing.T) {
	story(t, func(w *world) {
		ours, theirs := w.client(), w.client()
		keys := []string{"a", "b", "c"}
		results := ours.LockEach(w.Context(), slices.Values(keys))
		for range 100 {
			w.pass(ttl / 10)
			if len(results) != len(keys) {
				w.Fatalf("the channel has %d results, want %d", len(results), len(keys))
			}
		}
		for _, key := range keys {
			ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
			l, err := theirs.Lock(ctx, key)
			cancel()
			if err != nil {
				w.Fatal(err)
			}
			unlock(w, l)
		}
		w.pass(250 * time.Millisecond)
		for range keys {
			unlock(w, claim(w, results))
		}
		w.wantUnused()
	})
}

// A joining future that shares its channel with others waits for the key after its lease, too.
func TestLockEachUnderALeaseThatEnds(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		l := lock(w, c, "b")
		results := c.LockEach(context.WithoutCancel(l.Context()), slices.Values([]string{"", "b", "c"})) // the first is refused at once
		w.wait()
		unlock(w, l)
		w.wait()
		seen := make(map[string]bool)
		for range 3 {
			r := <-results
			if seen[r.Key()] {
				w.Errorf("a second result of key %q", r.Key())
			}
			seen[r.Key()] = true
			next, err := r.Lease()
			if r.Key() == "" {
				wantError(w, err, asynclock.ErrInvalidKey)
				continue
			}
			if err != nil {
				w.Fatal(err)
			}
			if r.Key() == "b" && next.Token() <= l.Token() {
				w.Errorf("token %d after %d", next.Token(), l.Token())
			}
			unlock(w, next)
		}
		w.wantUnused()
	})
}

func TestLeaseFrom(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		if l, ok := asynclock.LeaseFrom(w.Context(), "key"); ok || l != nil {
			w.Errorf("got %v from a context without leases", l)
		}
		if _, ok := asynclock.LeaseFrom(nil, "key"); ok { //nolint:staticcheck // what is tested
			w.Error("got a lease from no context")
		}
		err := c.WithLock(w.Context(), "key", func(ctx context.Context, lease *asynclock.Lease) error {
			return other.WithLock(ctx, "inner", func(ctx context.Context, inner *asynclock.Lease) error {
				for key, want := range map[string]*asynclock.Lease{"key": lease, "inner": inner} {
					if got, ok := asynclock.LeaseFrom(ctx, key); !ok || got != want {
						w.Errorf("the lease of %q: got %v, %v", key, got, ok)
					}
				}
				if _, ok := asynclock.LeaseFrom(ctx, "third"); ok {
					w.Error("got a lease of a key that nobody locked")
				}
				return nil
			})
		})
		if err != nil {
			w.Error(err)
		}
		l := lock(w, c, "key")
		ctx := l.Context()
		unlock(w, l)
		if got, ok := asynclock.LeaseFrom(ctx, "key"); !ok || got != l || got.Valid(0) {
			w.Errorf("after the end: got %v, %v; want the lease, which is no longer valid", got, ok)
		}
	})
}

func TestInfoSaysWhatIsMine(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		l := lock(w, c, "key")
		next := w.ask(w.Context(), c, "key")
		next.waits()
		unlock(w, l) // passed on inside the client: the store knows the first token
		l = next.has()
		for _, asked := range []struct {
			by   *asynclock.Client
			want bool
		}{{c, true}, {other, false}} {
			info, err := asked.by.Inspect(w.Context(), "key")
			if err != nil || info.Mine != asked.want {
				w.Errorf("Inspect: got mine %v, error %v; want %v", info.Mine, err, asked.want)
			}
			for info, err := range asked.by.List(w.Context(), "") {
				if err != nil || info.Mine != asked.want {
					w.Errorf("List: got mine %v, error %v; want %v", info.Mine, err, asked.want)
				}
			}
		}
		unlock(w, l)
		w.wait()
		taken := lock(w, other, "key")
		if info, err := c.Inspect(w.Context(), "key"); err != nil || info.Mine {
			w.Errorf("after the end: got mine %v, error %v", info.Mine, err)
		}
		unlock(w, taken)
	})
}

// Leases of several keys end at the same time. The futures under them share a channel, and nobody has
// received a result yet, so all of them wait for their keys.
func TestFuturesOfOneChannelAllWaitWhenTheirLeasesEndAtOnce(t *testing.T) {
	c, err := asynclock.New(memstore.New(), asynclock.WithReentry(true))
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for range 2000 {
		ctx := context.Background()
		var leases []*asynclock.Lease
		tokens := make(map[string]int64)
		for _, key := range keys {
			l, err := c.Lock(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			leases, ctx = append(leases, l), l.Context()
			tokens[key] = l.Token()
		}
		results := c.LockEach(context.WithoutCancel(ctx), slices.Values(keys))
		var ready atomic.Int32
		var all sync.WaitGroup
		for _, l := range leases {
			all.Go(func() {
				for ready.Add(1); int(ready.Load()) < len(keys); {
					runtime.Gosched()
				}
				l.UnlockChan(context.Background())
			})
		}
		all.Wait()
		for range keys {
			l := claim(t, results)
			if l.Token() <= tokens[l.Key()] {
				t.Errorf("the future of key %q has kept a lease that was unlocked before anybody received", l.Key())
			}
			_ = l.Unlock(context.Background())
		}
	}
}

// keysFor yields the numbers from 0 to n-1.
func keysFor(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(strconv.Itoa(i)) {
				return
			}
		}
	}
}

// A queue's consumer has no list of its keys.
func TestLockEachOfVeryManyKeys(t *testing.T) {
	story(t, func(w *world) {
		const workers, job = 4, time.Millisecond
		jobs := 40_000
		if kit.Nightly() {
			jobs = 400_000
		}
		c := w.clientOf(w.memory)
		var ahead, most, ran atomic.Int32
		keys := func(yield func(string) bool) {
			for key := range keysFor(jobs) {
				most.Store(max(most.Load(), ahead.Add(1)))
				if !yield(key) {
					return
				}
			}
		}
		var pool sync.WaitGroup
		start := time.Now()
		results := c.LockEach(w.Context(), keys)
		for range workers {
			pool.Go(func() {
				for got := range results {
					l, err := got.Lease()
					ahead.Add(-1)
					if err != nil {
						w.Error(err)
						continue
					}
					time.Sleep(job)
					unlock(w, l)
					ran.Add(1)
				}
			})
		}
		pool.Wait()
		if took := time.Since(start); int(ran.Load()) != jobs || took > time.Duration(jobs/workers)*job+time.Second {
			w.Errorf("%d jobs ran in %v, want %d in %v", ran.Load(), took, jobs, time.Duration(jobs/workers)*job)
		}
		if got := most.Load(); got > asynclock.DefaultWindow+workers {
			w.Errorf("%d keys were had from the iterator in advance, want %d at most", got, asynclock.DefaultWindow)
		}
		w.wantUnused()
	})
}

// An eachCase is an iterator, and what happens before a worker ranges over the results.
type eachCase struct {
	keys    func(w *world) iter.Seq[string]
	options []asynclock.LockOption
	then    func(w *world, c *asynclock.Client, end func())

	want   []string // the keys of which there is a lease
	failed int      // how many others have an error
	err    error    // of the result without a key; nil: there is none
}

func abc(*world) iter.Seq[string] { return slices.Values([]string{"a", "b", "c"}) }

// blocking yields a key, and does not return before the story is over.
func blocking(w *world) iter.Seq[string] {
	over := make(chan struct{})
	w.Cleanup(func() { close(over) })
	return func(yield func(string) bool) {
		yield("a")
		<-over
		if yield("too late") {
			w.Error("a key was requested after the end")
		}
	}
}

func endless(*world) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range keysFor(1 << 30) {
			if !yield(key) && !yield("deaf") { // does not listen at first
				return
			}
		}
	}
}

func ends(_ *world, _ *asynclock.Client, end func()) { end() }

// closes closes the client, which waits for no lease: each lies in the channel.
func closes(w *world, c *asynclock.Client, _ func()) {
	w.close(c)
}

var eachCases = map[string]eachCase{
	"all":            {keys: abc, want: []string{"a", "b", "c"}},
	"one by one":     {keys: abc, options: []asynclock.LockOption{asynclock.WithWindow(1)}, want: []string{"a", "b", "c"}},
	"no key":         {keys: func(*world) iter.Seq[string] { return keysFor(0) }},
	"no iterator":    {keys: func(*world) iter.Seq[string] { return nil }, err: asynclock.ErrInvalidOption},
	"a bad option":   {keys: blocking, options: []asynclock.LockOption{asynclock.WithTTL(-1)}, err: asynclock.ErrInvalidOption},
	"no window":      {keys: blocking, options: []asynclock.LockOption{asynclock.WithWindow(0)}, err: asynclock.ErrInvalidOption},
	"too wide":       {keys: blocking, options: []asynclock.LockOption{asynclock.WithWindow(asynclock.MaxWindow + 1)}, err: asynclock.ErrInvalidOption},
	"the widest":     {keys: abc, options: []asynclock.LockOption{asynclock.WithWindow(asynclock.MaxWindow)}, want: []string{"a", "b", "c"}},
	"a bad key":      {keys: func(*world) iter.Seq[string] { return slices.Values([]string{"", "b"}) }, want: []string{"b"}, err: asynclock.ErrInvalidKey},
	"ctx, endless":   {keys: endless, then: ends, failed: asynclock.DefaultWindow, err: context.Canceled},
	"ctx, blocked":   {keys: blocking, then: ends, failed: 1, err: context.Canceled},
	"ctx, all asked": {keys: abc, then: ends, failed: 3},
	"Close, endless": {keys: endless, then: closes, failed: asynclock.DefaultWindow, err: asynclock.ErrClosed},
	"Close, blocked": {keys: blocking, then: closes, failed: 1, err: asynclock.ErrClosed},
	"Close, all":     {keys: abc, then: closes, failed: 3},
}

// Each key has its result, and the channel is closed after the last one, whatever the iterator does.
func TestLockEachEnds(t *testing.T) {
	for name, c := range eachCases {
		scene(t, name, func(w *world) {
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			client := w.client()
			results := client.LockEach(ctx, c.keys(w), c.options...)
			w.wait()
			if c.then != nil {
				c.then(w, client, cancel)
				w.wait()
			}
			var leases []string
			failed, keyless := 0, error(nil)
			for got := range results {
				l, err := got.Lease()
				switch {
				case err == nil:
					leases = append(leases, got.Key())
					unlock(w, l)
				case got.Key() == "":
					keyless = err
				default:
					failed++
				}
			}
			slices.Sort(leases)
			if !slices.Equal(leases, c.want) || failed != c.failed {
				w.Errorf("got leases of %q and %d errors, want %q and %d", leases, failed, c.want, c.failed)
			}
			if !errors.Is(keyless, c.err) {
				w.Errorf("the result without a key: got %v, want %v", keyless, c.err)
			}
		})
	}
}

// Nobody could recover a panic on the client's goroutine. So it is an error, which says where to look. An iterator that
// ends its goroutine has not yielded all of its keys.
func TestLockEachSurvivesItsIterator(t *testing.T) {
	for name, panics := range map[string]func(){
		"panicked at":          func() { panic(errors.New("secret")) },
		"future_each_test.go:": func() { panic("secret") },
		"index out of range":   func() { _ = []int{}[len(t.Name())*0] },
		"runtime.Goexit":       runtime.Goexit,
	} {
		scene(t, name, func(w *world) {
			results := w.client().LockEach(w.Context(), func(yield func(string) bool) {
				yield("key")
				panics()
			})
			var texts []string
			for got := range results {
				l, err := got.Lease()
				if err == nil {
					unlock(w, l)
					continue
				}
				texts = append(texts, err.Error())
			}
			if len(texts) != 1 || !strings.Contains(texts[0], name) || strings.Contains(texts[0], "secret") {
				w.Errorf("got errors %q, want one that says %q", texts, name)
			}
			w.wantUnused()
		})
	}
}

// Careless consumers hold up neither other clients nor Close.
func TestLockEachOfCarelessConsumers(t *testing.T) {
	for name, consume := range map[string]func(results <-chan asynclock.Result){
		"never receives": func(<-chan asynclock.Result) {},
		"receives only":  func(results <-chan asynclock.Result) { <-results },
		"stops at the third": func(results <-chan asynclock.Result) {
			for range 2 {
				_, _ = (<-results).Lease()
			}
			<-results
		},
	} {
		scene(t, name, func(w *world) {
			ours, theirs := w.client(), w.client()
			results := ours.LockEach(w.Context(), keysFor(1000), asynclock.WithWindow(4))
			w.wait()
			consume(results)
			w.pass(time.Minute)
			looked := 2 // at most
			if got := w.calls(asynclocktest.Acquire.From(0)); got > 4+looked {
				w.Errorf("%d requests, want no more than fit into the window", got)
			}
			unlock(w, lock(w, theirs, "3")) // nobody has received it
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			if err := ours.Close(ctx); name == "never receives" && err != nil || time.Since(start) > time.Minute+3*time.Second {
				w.Errorf("Close: got %v after %v", err, time.Since(start))
			}
		})
	}
}

// A window means nothing to another call.
func TestOnlyLockEachHasAWindow(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithWindow(1))
		window := asynclock.WithWindow(2)
		unlock(w, lock(w, c, "by default"))
		_, lockErr := c.Lock(w.Context(), "a", window)
		_, futureErr := (<-c.LockChan(w.Context(), "b", window)).Lease()
		_, allErr := c.LockAll(w.Context(), []string{"c"}, window)
		_, semaphoreErr := c.Semaphore("d", 1, window)
		for _, err := range []error{lockErr, futureErr, allErr, semaphoreErr} {
			wantError(w, err, asynclock.ErrInvalidOption)
		}
		for window, options := range map[int][]asynclock.LockOption{1: nil, 2: {window}} {
			before, yielded := w.calls(asynclocktest.Acquire.Any), 0
			ctx, cancel := context.WithCancel(w.Context())
			c.LockEach(ctx, func(yield func(string) bool) {
				for key := range keysFor(9) {
					if yielded++; !yield(key) {
						return
					}
				}
			}, options...)
			w.wait()
			if got := w.calls(asynclocktest.Acquire.Any) - before; got != window || yielded != window {
				w.Errorf("%d keys were had from the iterator, and %d requested, want %d", yielded, got, window)
			}
			cancel()
			w.wait()
		}
	})
}
