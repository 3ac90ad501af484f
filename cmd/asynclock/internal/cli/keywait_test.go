// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A lookResult is what a look of a keyWait finds.
type lookResult struct {
	info asynclock.Info
	err  error
}

// newWait returns a wait whose looks find the results, one after the other, and the last one for ever. It also returns
// where the times of the looks and the messages go.
func newWait(held bool, results ...lookResult) (w *keyWait, looks *[]time.Duration, said *[]string) {
	begin := time.Now()
	looks, said = new([]time.Duration), new([]string)
	w = &keyWait{key: "k", held: held, told: make(chan struct{}, 1)}
	w.outage.say = func(format string, args ...any) { *said = append(*said, fmt.Sprintf(format, args...)) }
	w.inspect = func(context.Context, string) (asynclock.Info, error) {
		*looks = append(*looks, time.Since(begin))
		r := results[min(len(*looks), len(results))-1]
		r.info.Key = "k"
		return r.info, r.err
	}
	return w, looks, said
}

// TestKeyWait: when it looks, and how it ends.
func TestKeyWait(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	held := func(left time.Duration) lookResult {
		return lookResult{info: asynclock.Info{Held: true, Holder: "me", Token: 7, Remaining: left}}
	}
	var free lookResult
	queued := lookResult{info: asynclock.Info{Waiters: 2}}
	gone := lookResult{err: asynclock.ErrUnreachable}
	hangs := lookResult{err: context.DeadlineExceeded}
	foreign := lookResult{err: asynclock.ErrForeignData}
	const lost = "asynclock: store unreachable; going on"
	for name, tt := range map[string]struct {
		held    bool
		limit   waitLimit
		results []lookResult
		looks   []time.Duration
		code    int
		text    string
		said    []string
	}{
		"free at once":        {false, forever, []lookResult{free}, []time.Duration{0}, 0, "", nil},
		"held at once":        {true, forever, []lookResult{held(0)}, []time.Duration{0}, 0, "", nil},
		"freed":               {false, forever, []lookResult{held(time.Hour), held(-1), free}, []time.Duration{0, 1000 * ms, 2000 * ms}, 0, "", nil},
		"the TTL ends":        {false, forever, []lookResult{held(300 * ms), held(5 * ms), free}, []time.Duration{0, 300 * ms, 400 * ms}, 0, "", nil},
		"taken":               {true, forever, []lookResult{free, free, held(0)}, []time.Duration{0, 250 * ms, 500 * ms}, 0, "", nil},
		"others wait for it":  {false, forever, []lookResult{queued, free}, []time.Duration{0, 1000 * ms}, 0, "", nil},
		"look once":           {false, 0, []lookResult{held(9 * time.Second)}, []time.Duration{0}, 124, `"k" is held by me (token 7, 9.0s of its TTL left), after 0s`, nil},
		"too long held":       {false, waitLimit(1500 * ms), []lookResult{held(time.Hour)}, []time.Duration{0, 1000 * ms}, 124, `"k" is held by me (token 7, 3600.0s of its TTL left), after 1.5s`, nil},
		"too long free":       {true, waitLimit(300 * ms), []lookResult{free}, []time.Duration{0, 250 * ms}, 124, `nobody holds "k", after 300ms`, nil},
		"too long queued":     {false, waitLimit(300 * ms), []lookResult{queued}, []time.Duration{0}, 124, `nobody holds "k", but 2 wait for it, after 300ms`, nil},
		"outage":              {false, forever, []lookResult{held(-1), gone, hangs, free}, []time.Duration{0, 1000 * ms, 2000 * ms, 3000 * ms}, 0, "", []string{lost, "the server answers again"}},
		"outage to the end":   {false, waitLimit(1500 * ms), []lookResult{held(-1), gone}, []time.Duration{0, 1000 * ms}, 124, `"k" is held by me (token 7), after 1.5s`, []string{lost}},
		"no server":           {false, forever, []lookResult{gone}, []time.Duration{0}, 69, "asynclock: store unreachable", nil},
		"no answer":           {false, 0, []lookResult{hangs}, []time.Duration{0}, 69, "context deadline exceeded", nil},
		"foreign data":        {false, forever, []lookResult{foreign}, []time.Duration{0}, 65, foreign.err.Error(), nil},
		"foreign data by now": {false, forever, []lookResult{held(-1), foreign}, []time.Duration{0, 1000 * ms}, 65, foreign.err.Error(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, looks, said := newWait(tt.held, tt.results...)
				err := w.run(t.Context(), tt.limit)
				code, text := 0, ""
				if err != nil {
					code, text = exitCode(err), message(err)
				}
				if code != tt.code || text != tt.text || !slices.Equal(*looks, tt.looks) {
					t.Errorf("got %d, %q after looks at %v; want %d, %q, %v", code, text, *looks, tt.code, tt.text, tt.looks)
				}
				if !slices.Equal(*said, tt.said) {
					t.Errorf("got said %q, want %q", *said, tt.said)
				}
			})
		})
	}
}

// TestKeyWaitIsTold: it looks at once when something is announced, again soon afterwards, and not more often than it may.
func TestKeyWaitIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := lookResult{info: asynclock.Info{Held: true, Remaining: time.Hour}}
		w, looks, _ := newWait(false, held, held, held, held, held, lookResult{})
		time.AfterFunc(700*time.Millisecond, func() { w.told <- struct{}{} })
		time.AfterFunc(710*time.Millisecond, func() { w.told <- struct{}{} })
		if err := w.run(t.Context(), forever); err != nil {
			t.Errorf("got %v, want none", err)
		}
		var want []time.Duration
		for _, ms := range []int{0, 700, 800, 900, 1900, 2900} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if !slices.Equal(*looks, want) {
			t.Errorf("got looks at %v, want %v", *looks, want)
		}
	})
}

// TestKeyWaitEndsWithItsContext, as a signal ends it.
func TestKeyWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		w, _, _ := newWait(true, lookResult{})
		if err := w.run(ctx, forever); !errors.Is(err, context.DeadlineExceeded) || time.Since(w.looked) != 50*time.Millisecond {
			t.Errorf("got %v %v after the last look, want the context's end", err, time.Since(w.looked))
		}
	})
}

// TestKeyWaitObserves: a holder that announces itself is noticed at once.
func TestKeyWaitObserves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, err := asynclock.New(memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(t.Context())
		lease, err := locks.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Announce(t.Context(), []byte("here"), time.Minute); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		w := &keyWait{key: "k", inspect: locks.Inspect, told: make(chan struct{}, 1)}
		end, err := w.observe(&connection{Client: locks})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		time.AfterFunc(500*time.Millisecond, func() { _ = lease.Unlock(t.Context()) })
		if err := w.run(t.Context(), forever); err != nil || time.Since(begin) >= latestLook {
			t.Errorf("got %v after %v, want an end at once", err, time.Since(begin))
		}
	})
}
