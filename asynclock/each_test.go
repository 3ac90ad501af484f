// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
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
