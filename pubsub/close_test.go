// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
)

// In a bubble a goroutine that is left over fails the test.
func TestCloseAtEachStage(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]struct {
		misbehave func(*fakeSource)
		wait      time.Duration
	}{
		"at once":       {wait: 0},
		"subscribing":   {func(f *fakeSource) { f.mute = true }, time.Second},
		"proving":       {func(f *fakeSource) { f.hold = true }, time.Second},
		"live":          {nil, time.Second},
		"proving again": {nil, 11 * time.Second},
		"backing off":   {func(f *fakeSource) { f.refuse = errors.New("refused") }, time.Minute},
		"deaf":          {func(f *fakeSource) { f.deaf = true }, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, told := newFakeSource(), &recorder{}
				if stage.misbehave != nil {
					stage.misbehave(f)
				}
				inbox := pubsub.Open(f, told.handler())
				if stage.wait > 0 {
					time.Sleep(stage.wait)
					synctest.Wait()
				}
				begin := time.Now()
				inbox.Close(context.Background())
				if took := time.Since(begin); took != 0 {
					t.Errorf("Close took %v, want no waiting", took)
				}
				wantLive(t, inbox, false)
				wantSettled(t, inbox, true)
				inbox.Close(context.Background()) // again

				// Nothing comes to life, even if the source goes on.
				calls, subscriptions, probes := len(told.calls), len(f.receives), len(f.publishes)
				if f.confirm != nil {
					f.confirm()
					f.deliver("late")
				}
				f.release()
				time.Sleep(time.Minute)
				synctest.Wait()
				wantLive(t, inbox, false)
				if len(told.calls) != calls || len(f.receives) != subscriptions || len(f.publishes) != probes {
					t.Errorf("after Close: got %q, %d subscriptions, %d probes; want no more than %d, %d, %d",
						told.calls, len(f.receives), len(f.publishes), calls, subscriptions, probes)
				}
			})
		})
	}
}

func TestCloseDoesNotCallDown(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, _ *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(time.Second)
		inbox.Close(context.Background())
		told.want(t, "up")
	})
}

func TestCloseWaitsForTheHandlerAndDropsTheQueue(t *testing.T) {
	t.Parallel()
	for range 20 { // select takes either of two that are ready
		inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
			unblock := told.stall(f)
			for range 100 {
				f.send("queued")
			}
			wantCloseToWait(t, inbox, unblock)
			told.want(t, "up", "stall")
		})
	}
}

func TestCloseWaitsForReceive(t *testing.T) {
	t.Parallel()
	stuck := func(f *fakeSource) { f.stuckReceive = make(chan struct{}) }
	inBubble(t, stuck, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		wantLive(t, inbox, true)
		wantCloseToWait(t, inbox, func() { close(f.stuckReceive) })
	})
}

func TestCloseWaitsForPublish(t *testing.T) {
	t.Parallel()
	stuck := func(f *fakeSource) { f.stuckPublish = make(chan struct{}) }
	inBubble(t, stuck, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		synctest.Wait()
		wantCloseToWait(t, inbox, func() { close(f.stuckPublish) })
	})
}

// wantCloseToWait checks that two calls of Close wait until free is called,
// while the other methods go on answering.
func wantCloseToWait(t *testing.T, inbox *pubsub.Inbox, free func()) {
	t.Helper()
	var closing sync.WaitGroup
	returned := make(chan struct{}, 2)
	for range 2 {
		closing.Go(func() { inbox.Close(context.Background()); returned <- struct{}{} })
	}
	time.Sleep(time.Hour)
	wantLive(t, inbox, false)
	wantSettled(t, inbox, true)
	if len(returned) != 0 {
		t.Error("Close returned while a call was running")
	}
	free()
	closing.Wait()
}

// Close waits for an inbox that hangs, but not longer than it may.
func TestCloseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	stuck := func(f *fakeSource) { f.stuckReceive = make(chan struct{}) }
	inBubble(t, stuck, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		wantLive(t, inbox, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if err := inbox.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("Close while the source hangs: got %v after %v, want the context's end after a minute", err, time.Since(begin))
		}
		wantLive(t, inbox, false)
		close(f.stuckReceive)
		if err := inbox.Close(t.Context()); err != nil {
			t.Errorf("Close when it hangs no more: got %v, want nil", err)
		}
	})
}

// WaitLive waits for the first verdict, for so long since Open, and for a quarter of what
// its context has left; later it answers at once.
func TestWaitLive(t *testing.T) {
	t.Parallel()
	const atMost = 250 * time.Millisecond
	hold := func(f *fakeSource) { f.hold = true } // proves nothing, so there is no verdict for seconds
	inBubble(t, hold, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		waited := func(ctx context.Context, wantLive bool, want time.Duration) {
			t.Helper()
			begin := time.Now()
			if live := inbox.WaitLive(ctx, atMost); live != wantLive || time.Since(begin) != want {
				t.Errorf("got %t after %v, want %t after %v", live, time.Since(begin), wantLive, want)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		waited(short, false, 10*time.Millisecond)
		cancel()
		waited(short, false, 0)
		waited(t.Context(), false, 240*time.Millisecond)
		waited(t.Context(), false, 0)
	})
	inBubble(t, nil, func(t *testing.T, _ *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		begin := time.Now()
		if !inbox.WaitLive(t.Context(), atMost) || time.Since(begin) >= atMost {
			t.Errorf("of one that works: not live after %v", time.Since(begin))
		}
	})
}

func TestHandlerMayCloseFromAnotherGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inbox *pubsub.Inbox
		var closing sync.WaitGroup
		open := make(chan struct{})
		inbox = pubsub.Open(newFakeSource(), pubsub.Handler{Up: func() {
			<-open
			closing.Go(func() { inbox.Close(context.Background()) })
		}})
		close(open)
		synctest.Wait()
		closing.Wait()
	})
}

// Not parallel: it counts the goroutines of all inboxes.
func TestInboxHasTwoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := pubsub.Open(newFakeSource(), pubsub.Handler{})
		defer inbox.Close(context.Background())
		for range 100 {
			time.Sleep(time.Second)
			synctest.Wait()
			if got := inboxGoroutines(); got != 2 {
				t.Fatalf("goroutines of a live inbox: got %d, want 2", got)
			}
		}
	})
}

// inboxGoroutines counts the goroutines with a function of package pubsub on
// their stack.
func inboxGoroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for stack := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("/pubsub.")) {
			n++
		}
	}
	return n
}
