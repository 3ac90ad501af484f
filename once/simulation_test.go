// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
)

// A history is what processes have done, by intervals.
type history struct {
	mu       sync.Mutex
	began    map[string]int    // by interval and attempt
	ended    map[time.Time]int // as far as their processes know
	recorded map[time.Time]bool
	repeated int
}

func (h *history) begins(run once.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began[fmt.Sprintf("%v, attempt %d", run.Start, run.Attempt)]++
	if run.Attempt > 1 {
		h.repeated++
	}
}

// learns of what Do has found or done. The record may have been written although its writer had no answer.
func (h *history) learns(o *once.Outcome) {
	if o.Last.Ended.IsZero() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded[o.Last.Start] = true
	if o.Ran {
		h.ended[o.Last.Start]++
	}
}

// Processes on a bad network run a job of short intervals. Some are cut off for a while, and some die. One is
// spared, so that each interval has a run.
func TestProcessesOnABadNetwork(t *testing.T) {
	story(t, func(w *world) {
		const processes, intervals, short = 8, 60, 8 * time.Second
		h := history{began: make(map[string]int), ended: make(map[time.Time]int), recorded: make(map[time.Time]bool)}
		ctx, cancel := context.WithCancel(w.Context())
		var running sync.WaitGroup
		for n := range processes {
			c := w.client(asynclock.WithTTL(500 * time.Millisecond))
			if n > 0 {
				w.store.Every(asynclocktest.Match(nil).From(n), badLink())
			}
			running.Go(func() { h.process(ctx, c, short) })
		}
		begin := time.Now().Truncate(short)
		w.pass(intervals * short)
		cancel()
		running.Wait()
		for attempt, n := range h.began {
			if n != 1 {
				w.Errorf("%s: got it begun %d times, want once", attempt, n)
			}
		}
		for i := range intervals {
			start := begin.Add(time.Duration(i) * short).UTC()
			if n := h.ended[start]; n > 1 || !h.recorded[start] {
				w.Errorf("interval %d: got %d runs that ended, recorded: %v; want 1, recorded", i, n, h.recorded[start])
			}
		}
		if h.repeated == 0 {
			w.Error("no attempt was repeated: the network was not bad")
		}
	})
}

// process calls Do over and over, by a timer of its own, and goes on working after a loss for a while.
func (h *history) process(ctx context.Context, c *asynclock.Client, every time.Duration) {
	for ctx.Err() == nil {
		o, _ := once.Do(ctx, c, key, every, func(_ context.Context, run once.Run) error {
			h.begins(run)
			time.Sleep(rand.N(2500 * time.Millisecond)) // long enough for some 15 losses in a simulation
			return nil
		})
		h.learns(&o)
		time.Sleep(100*time.Millisecond + rand.N(200*time.Millisecond))
	}
}

// badLink loses, delays and repeats requests, and is cut now and then.
func badLink() asynclocktest.Fault {
	var mu sync.Mutex
	var cutUntil time.Time
	return func(ctx context.Context, carry func()) error {
		mu.Lock()
		if rand.N(20) == 0 {
			cutUntil = time.Now().Add(rand.N(3 * time.Second))
		}
		cut := time.Now().Before(cutUntil)
		mu.Unlock()
		switch {
		case cut:
			return asynclocktest.Hang(ctx, carry)
		case rand.N(8) > 0:
			carry()
			return nil
		}
		faults := []asynclocktest.Fault{
			asynclocktest.Refuse, asynclocktest.LoseReply, asynclocktest.Silence, asynclocktest.Again(300 * time.Millisecond),
			asynclocktest.Slow(rand.N(300*time.Millisecond), rand.N(300*time.Millisecond)),
		}
		return faults[rand.N(len(faults))](ctx, carry)
	}
}
