// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
)

func TestEndOfReceiveIsAnOutage(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	for name, reason := range map[string]error{"nil": nil, "error": broken} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
				time.Sleep(time.Minute)
				f.end <- reason
				wantLive(t, inbox, false)
				told.want(t, "up", "down")
				err := told.lastWhy()
				if !errors.Is(err, pubsub.ErrEnded) || reason != nil && !errors.Is(err, reason) {
					t.Errorf("why: got %v, want %v and %v", err, pubsub.ErrEnded, reason)
				}
				time.Sleep(100 * time.Millisecond)
				wantLive(t, inbox, true)
				told.want(t, "up", "down", "up")
			})
		})
	}
}

func TestEndBeforeTheProofIsAVerdict(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.hold = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(time.Second)
		f.end <- nil
		wantSettled(t, inbox, true)
		wantLive(t, inbox, false)
		told.want(t, "down")
	})
}

func TestDownComesOncePerOutageWithTheFirstReason(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(time.Minute)
		f.change(func() { f.deaf = true })
		f.end <- nil
		time.Sleep(time.Minute) // deaf
		f.change(func() { f.mute = true })
		time.Sleep(time.Minute)
		f.change(func() { f.refuse = errors.New("refused") })
		time.Sleep(time.Minute)
		told.want(t, "up", "down")
		if err := told.lastWhy(); !errors.Is(err, pubsub.ErrEnded) {
			t.Errorf("why: got %v, want %v", err, pubsub.ErrEnded)
		}

		f.change(func() { f.refuse, f.mute, f.deaf = nil, false, false })
		time.Sleep(32 * time.Second)
		told.want(t, "up", "down", "up")
		f.end <- nil // another outage
		told.want(t, "up", "down", "up", "down")
		time.Sleep(time.Second)
		wantLive(t, inbox, true)
	})
}

func TestProveEndsThePause(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.refuse = errors.New("nobody there") }, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		time.Sleep(time.Hour) // the pauses are of 15 s now, at least
		f.change(func() { f.receives = nil })
		for range 60 {
			inbox.Prove()
			time.Sleep(100 * time.Millisecond)
		}
		f.change(func() {
			if n := len(f.receives); n < 3 || n > 4 {
				t.Errorf("subscriptions in 6 s: got %d, want one each 2 s", n)
			}
			f.refuse = nil
		})
		time.Sleep(2 * time.Second)
		inbox.Prove()
		synctest.Wait()
		wantLive(t, inbox, true)
	})
}

func TestPausesDoubleUpToTheirCapAndAreJittered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.refuse = errors.New("refused") }, func(t *testing.T, f *fakeSource, _ *recorder, _ *pubsub.Inbox) {
		time.Sleep(time.Hour)
		synctest.Wait()
		gaps := gapsOf(f.receives)
		most := 100 * time.Millisecond
		for i, gap := range gaps {
			if gap < most/2 || gap > most {
				t.Errorf("pause %d: got %v, want %v to %v", i, gap, most/2, most)
			}
			most = min(2*most, 30*time.Second)
		}
		capped := gaps[20:]
		if slices.Min(capped) == slices.Max(capped) {
			t.Errorf("all pauses are %v, want jitter", capped[0])
		}
	})
}

func TestPausesStartAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.refuse = errors.New("refused") }, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		time.Sleep(10 * time.Minute)
		f.change(func() { f.refuse = nil })
		time.Sleep(30*time.Second + 3*time.Second)
		wantLive(t, inbox, true)
		for range 20 { // each of them lasts
			f.end <- nil
			time.Sleep(100 * time.Millisecond)
			wantLive(t, inbox, true)
			time.Sleep(2 * time.Second)
		}
	})
}

// A server that ends each subscription soon after its proof must not make all
// receivers look at everything ten times a second.
func TestSubscriptionsThatDoNotLastAreNoSuccess(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		for range 10 {
			time.Sleep(time.Second)
			f.end <- nil // waits for the next subscription
		}
		synctest.Wait()
		gaps := gapsOf(f.receives)
		if last := gaps[len(gaps)-1]; last < 10*time.Second {
			t.Errorf("last of %d pauses: got %v, want it to have grown beyond 10 s", len(gaps), last)
		}
	})
}

// Not even then is there a second subscription beside the first.
func TestReceiveThatDoesNotEndKeepsTheInboxDown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.mute, f.stuckReceive = true, make(chan struct{}) },
		func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
			time.Sleep(time.Hour)
			wantLive(t, inbox, false)
			told.want(t, "down")
			f.reconfirm() // too late
			synctest.Wait()
			if len(f.receives) != 1 || len(f.publishes) != 0 {
				t.Errorf("got %d subscriptions and %d probes, want 1 and 0", len(f.receives), len(f.publishes))
			}

			f.change(func() { f.mute = false })
			close(f.stuckReceive)
			time.Sleep(100 * time.Millisecond)
			wantLive(t, inbox, true)
			told.want(t, "down", "up")
		})
}

func TestPublishThatDoesNotEndIsNotCalledTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		synctest.Wait()
		stuck := make(chan struct{})
		f.change(func() { f.stuckPublish = stuck })
		time.Sleep(12 * time.Second)
		wantLive(t, inbox, false)
		told.want(t, "up", "down")
		time.Sleep(10 * time.Minute)
		told.want(t, "up", "down")
		if len(f.publishes) != 2 {
			t.Errorf("calls of Publish: got %d, want the one that worked and the one that hangs", len(f.publishes))
		}

		f.change(func() { f.stuckPublish = nil })
		close(stuck)
		time.Sleep(32 * time.Second)
		wantLive(t, inbox, true)
		told.want(t, "up", "down", "up")
	})
}
