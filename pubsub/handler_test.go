// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
)

func TestUpStandsWhereTheProbeArrived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.hold = true }, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		unblock := told.stall(f)
		f.deliver("before")
		f.release() // the probe
		f.deliver("after")
		unblock()
		told.want(t, "stall", "before", "up", "after")
	})
}

func TestMessagesArePassedOnWhateverTheState(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.mute = true }, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		synctest.Wait()
		f.send("unsettled")
		time.Sleep(5 * time.Second)
		told.want(t, "unsettled", "down")
		f.deliver("late") // by a Receive that was told to end
		f.deliver("")
		told.want(t, "unsettled", "down", "late", "")
	})
}

func TestSlowHandlerDoesNotKeepTheSourceWaiting(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		unblock := told.stall(f)
		begin := time.Now()
		for range 10_000 {
			f.send("m") // if this waited, nothing could ever move again
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("delivering took %v, want no waiting", took)
		}
		time.Sleep(time.Hour) // proofs go on
		wantLive(t, inbox, true)
		unblock()
	})
}

func TestQueueHolds1024(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		unblock := told.stall(f)
		want := []string{"up", "stall"}
		for i := range 1024 {
			f.send(fmt.Sprint(i))
			want = append(want, fmt.Sprint(i))
		}
		unblock()
		told.want(t, want...)
	})
}

func TestOverflowDropsTheQueueAndIsFollowedByUp(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		unblock := told.stall(f)
		for i := range 1026 {
			f.send(fmt.Sprint(i))
		}
		wantLive(t, inbox, true)
		unblock()
		told.want(t, "up", "stall", "up", "1024", "1025")
	})
}

func TestOverflowKeepsAnOutageThatWasNotHeardOf(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		unblock := told.stall(f)
		f.change(func() { f.refuse = errors.New("refused") })
		f.end <- nil
		synctest.Wait()
		for i := range 1030 {
			f.deliver(fmt.Sprint(i))
		}
		unblock()
		told.want(t, "up", "stall", "down", "1023", "1024", "1025", "1026", "1027", "1028", "1029")
		if err := told.lastWhy(); !errors.Is(err, pubsub.ErrEnded) {
			t.Errorf("why: got %v, want %v", err, pubsub.ErrEnded)
		}
		f.change(func() { f.refuse = nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := told.calls[len(told.calls)-1]; got != "up" {
			t.Errorf("after the outage: got %q, want up", got)
		}
	})
}

func TestOverflowInAnOutageThatWasHeardOfSaysNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.refuse = errors.New("refused") }, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		unblock := told.stall(f)
		for i := range 1025 {
			f.deliver(fmt.Sprint(i))
		}
		unblock()
		told.want(t, "down", "stall", "1024")
	})
}

func TestChangeThatOverflowsTheQueueIsAllThatIsLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		unblock := told.stall(f)
		for range 1024 {
			f.send("m")
		}
		f.change(func() { f.refuse = errors.New("refused") })
		f.end <- nil
		synctest.Wait()
		for range 1023 {
			f.deliver("m")
		}
		f.change(func() { f.refuse = nil })
		time.Sleep(time.Minute)
		unblock()
		told.want(t, "up", "stall", "up")
	})
}

func TestHandlerWithoutFunctions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakeSource()
		inbox := pubsub.Open(f, pubsub.Handler{})
		defer inbox.Close(context.Background())
		wantLive(t, inbox, true)
		f.send("m")
		f.end <- nil
		time.Sleep(100*time.Millisecond + 2*time.Second) // the first pause, and what the next connection has to last
		wantLive(t, inbox, true)
	})
}

// Each of the functions that an inbox is given panics once, in a program of
// its own, which must not survive it.
func TestPanicsAreNotCaught(t *testing.T) {
	t.Parallel()
	const where = "PUBSUB_TEST_PANIC"
	if place := os.Getenv(where); place != "" {
		panicIn(place)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"Message", "Up", "Down", "Receive", "Publish"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestPanicsAreNotCaught$", "-test.timeout=20s")
			cmd.Env = append(slices.Clone(os.Environ()), where+"="+place)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "panic: boom in "+place) {
				t.Errorf("got %v and %q, want the panic's own end", err, out)
			}
		})
	}
}

func panicIn(place string) {
	boom := func(here string) {
		if here == place {
			panic("boom in " + here)
		}
	}
	f := newFakeSource()
	if place == "Down" {
		f.refuse = errors.New("refused")
	}
	done := make(chan struct{})
	defer pubsub.Open(panicSource{f, boom}, pubsub.Handler{
		Message: func(string) { boom("Message"); close(done) },
		Up:      func() { boom("Up"); f.send("m") },
		Down:    func(error) { boom("Down") },
	}).Close(context.Background())
	<-done
}

type panicSource struct {
	*fakeSource
	boom func(string)
}

func (p panicSource) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	p.boom("Receive")
	return p.fakeSource.Receive(ctx, confirmed, deliver)
}

func (p panicSource) Publish(ctx context.Context, payload string) error {
	p.boom("Publish")
	return p.fakeSource.Publish(ctx, payload)
}
