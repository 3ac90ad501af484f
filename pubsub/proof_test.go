// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
)

func TestLiveOnlyOnceTheProbeHasArrived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.hold = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(1999 * time.Millisecond)
		wantLive(t, inbox, false)
		wantSettled(t, inbox, false)
		told.want(t)

		f.release()
		wantLive(t, inbox, true)
		wantSettled(t, inbox, true)
		told.want(t, "up")
	})
}

func TestServerThatAcceptsSubscriptionsButDropsMessagesDoesNotCount(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.deaf = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(1999 * time.Millisecond)
		wantSettled(t, inbox, false)
		time.Sleep(time.Millisecond)
		wantSettled(t, inbox, true)
		wantLive(t, inbox, false)
		told.want(t, "down")
		if err := told.lastWhy(); !errors.Is(err, pubsub.ErrNotDelivered) {
			t.Errorf("why: got %v, want %v", err, pubsub.ErrNotDelivered)
		}

		time.Sleep(10 * time.Minute)
		wantLive(t, inbox, false)
		told.want(t, "down")

		f.change(func() { f.deaf = false })
		time.Sleep(32 * time.Second)
		wantLive(t, inbox, true)
		told.want(t, "down", "up")
	})
}

func TestServerThatNeverConfirmsDoesNotCount(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.mute = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(4999 * time.Millisecond)
		wantSettled(t, inbox, false)
		time.Sleep(time.Millisecond)
		wantSettled(t, inbox, true)
		wantLive(t, inbox, false)
		told.want(t, "down")
		if err := told.lastWhy(); !errors.Is(err, pubsub.ErrNotConfirmed) {
			t.Errorf("why: got %v, want %v", err, pubsub.ErrNotConfirmed)
		}
		if len(f.publishes) != 0 {
			t.Errorf("probes published: got %d, want none before a confirmation", len(f.publishes))
		}

		f.change(func() { f.mute = false })
		time.Sleep(time.Second)
		wantLive(t, inbox, true)
		told.want(t, "down", "up")
	})
}

func TestSlowConfirmationLeavesTheProbeItsTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.mute, f.hold = true, true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(4900 * time.Millisecond)
		f.reconfirm()
		time.Sleep(1900 * time.Millisecond)
		wantSettled(t, inbox, false)
		f.release()
		wantLive(t, inbox, true)
		told.want(t, "up")
	})
}

func TestProbeThatCannotBePublishedIsAVerdictAtOnce(t *testing.T) {
	t.Parallel()
	denied := errors.New("NOPERM")
	inBubble(t, func(f *fakeSource) { f.publishErr = denied }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		wantSettled(t, inbox, true)
		wantLive(t, inbox, false)
		told.want(t, "down")
		if err := told.lastWhy(); !errors.Is(err, denied) {
			t.Errorf("why: got %v, want %v", err, denied)
		}
		f.change(func() { f.publishErr = nil })
		time.Sleep(time.Second)
		told.want(t, "down", "up")
	})
}

// The reply of a PUBLISH can be lost when the message was not.
func TestProbeThatArrivedCountsWhateverPublishSays(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.publishErr = errors.New("reply lost"); f.stuckPublish = make(chan struct{}) },
		func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
			synctest.Wait()
			f.send(f.probes[0])
			wantLive(t, inbox, true)
			close(f.stuckPublish)
			wantLive(t, inbox, true)
			told.want(t, "up")
		})
}

// A replica delivers a probe before the primary has said that it knows no receiver.
func TestASubscriptionElsewhereIsNoneWhateverArrives(t *testing.T) {
	t.Parallel()
	elsewhere := fmt.Errorf("no receiver: %w", pubsub.ErrElsewhere)
	inBubble(t, func(f *fakeSource) { f.publishErr = elsewhere; f.stuckPublish = make(chan struct{}) },
		func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
			synctest.Wait()
			f.send(f.probes[0])
			wantLive(t, inbox, true)
			close(f.stuckPublish)
			synctest.Wait()
			wantLive(t, inbox, false)
			told.want(t, "up", "down")
		})
}

// A receiver that has a reason for doubt need not wait for the next proof. Many reasons at once make one proof.
func TestProve(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		time.Sleep(3 * time.Second)
		for range 3 {
			inbox.Prove()
			synctest.Wait()
		}
		if len(f.publishes) != 2 || time.Since(f.publishes[1]) != 0 {
			t.Errorf("got probes at %v, want the first, and one now", f.publishes)
		}
	})
}

func TestOnlyTheVeryProbeProves(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.hold = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		synctest.Wait()
		probe := f.probes[0]
		for _, payload := range []string{
			pubsub.ProbePrefix,
			pubsub.ProbePrefix + strings.Repeat("A", 26),
			probe[:len(probe)-1],
			probe + "A",
			strings.ToLower(probe),
		} {
			f.deliver(payload)
		}
		wantLive(t, inbox, false)
		told.want(t) // nor is any of them a message

		f.deliver(probe)
		wantLive(t, inbox, true)
		told.want(t, "up")
	})
}

func TestProbeThatComesTooLateProvesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.hold = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(2 * time.Second)
		told.want(t, "down")
		f.deliver(f.probes[0]) // that subscription is over
		wantLive(t, inbox, false)

		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		f.deliver(f.probes[0]) // and this is the next
		wantLive(t, inbox, false)
		f.deliver(f.probes[1])
		wantLive(t, inbox, true)
		told.want(t, "down", "up")
	})
}

func TestProbesAreUnguessable(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, _ *recorder, _ *pubsub.Inbox) {
		time.Sleep(time.Hour)
		synctest.Wait()
		seen := map[string]bool{}
		for _, probe := range f.probes {
			random, ok := strings.CutPrefix(probe, pubsub.ProbePrefix)
			if !ok || len(random) < 22 || seen[probe] {
				t.Fatalf("probe %q: want the prefix, then 128 bits, never twice", probe)
			}
			seen[probe] = true
		}
	})
}

func TestDuplicatesOfProbesChangeNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.copies = 3 }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(time.Minute)
		wantLive(t, inbox, true)
		f.send("m")
		told.want(t, "up", "m", "m", "m")
	})
}

func TestLiveInboxProvesItselfAgainAndAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(10 * time.Minute)
		wantLive(t, inbox, true)
		told.want(t, "up") // later proofs are no news
		if len(f.receives) != 1 {
			t.Errorf("subscriptions: got %d, want 1", len(f.receives))
		}
		gaps := gapsOf(f.publishes)
		for _, gap := range gaps {
			if gap < 5*time.Second || gap > 10*time.Second {
				t.Errorf("between two probes: got %v, want 5 s to 10 s", gap)
			}
		}
		if slices.Min(gaps) == slices.Max(gaps) {
			t.Errorf("all probes came %v apart, want jitter", gaps[0])
		}
	})
}

func TestSubscriptionThatSilentlyDiedIsNoticed(t *testing.T) {
	t.Parallel()
	for range 20 { // jitter
		inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
			time.Sleep(time.Minute)
			synctest.Wait()
			f.change(func() { f.deaf = true })
			time.Sleep(12 * time.Second)
			wantLive(t, inbox, false)
			told.want(t, "up", "down")
			if err := told.lastWhy(); !errors.Is(err, pubsub.ErrNotDelivered) {
				t.Errorf("why: got %v, want %v", err, pubsub.ErrNotDelivered)
			}

			f.change(func() { f.deaf = false })
			time.Sleep(30 * time.Second)
			wantLive(t, inbox, true)
			told.want(t, "up", "down", "up")
		})
	}
}

func TestReconnectInsideReceiveIsToldAndProvenAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(2 * time.Second)
		told.want(t, "up")
		f.reconfirm()
		told.want(t, "up", "up")
		wantLive(t, inbox, true)

		// Now one whose new connection is deaf: yesterday's proof is none.
		synctest.Wait()
		f.change(func() { f.deaf = true })
		f.reconfirm()
		synctest.Wait()
		for _, old := range f.probes[:len(f.probes)-1] {
			f.deliver(old)
		}
		time.Sleep(2 * time.Second)
		wantLive(t, inbox, false)
		told.want(t, "up", "up", "down")
		if len(f.receives) != 1 {
			t.Errorf("subscriptions: got %d, want 1 until the back-off ends", len(f.receives))
		}
	})
}

// Where connections break soon, one that has just been proven may be broken as soon as the next message is sent.
func TestConnectionsThatDoNotLastAreNotReliedOn(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		wantLive(t, inbox, true) // the first one
		time.Sleep(1999 * time.Millisecond)
		f.reconfirm()
		told.want(t, "up", "up")
		wantLive(t, inbox, false)
		time.Sleep(1999 * time.Millisecond)
		wantLive(t, inbox, false)
		time.Sleep(time.Millisecond)
		wantLive(t, inbox, true)
		f.reconfirm()
		wantLive(t, inbox, true)
	})
}

// The pauses between them grow far beyond what a connection has to last.
func TestAConnectionHasToLastHoweverLateItComes(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, _ *recorder, inbox *pubsub.Inbox) {
		var began time.Time // the latest subscription
		for range 12 {
			time.Sleep(time.Second)
			f.end <- nil
			ended := time.Now()
			for began = ended; !began.After(ended); f.change(func() { began = f.receives[len(f.receives)-1] }) {
				time.Sleep(time.Millisecond)
			}
			wantLive(t, inbox, false)
		}
		time.Sleep(time.Until(began.Add(2*time.Second)) - time.Nanosecond)
		wantLive(t, inbox, false)
		time.Sleep(time.Nanosecond)
		wantLive(t, inbox, true)
	})
}

// Nor is one relied on that is not proven yet, however long that takes.
func TestAConnectionWithoutProofHasNotLasted(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		time.Sleep(time.Second)
		f.change(func() { f.hold = true })
		f.reconfirm()
		time.Sleep(1999 * time.Millisecond)
		wantLive(t, inbox, false)
		f.release()
		told.want(t, "up", "up")
		time.Sleep(1999 * time.Millisecond)
		wantLive(t, inbox, false)
		time.Sleep(time.Millisecond)
		wantLive(t, inbox, true)
	})
}

// The probe under way when a confirmation comes may have been answered by the
// connection before.
func TestConfirmationReplacesTheProbeUnderWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fakeSource) { f.hold = true }, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		synctest.Wait()
		f.reconfirm()
		synctest.Wait()
		if len(f.probes) != 2 {
			t.Fatalf("probes: got %d, want one for each confirmation", len(f.probes))
		}
		f.deliver(f.probes[0])
		wantLive(t, inbox, false)
		f.deliver(f.probes[1])
		wantLive(t, inbox, true)
		told.want(t, "up")
	})
}

func TestSourceThatConfirmsAllTheTimeIsFoundOut(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		synctest.Wait()
		f.change(func() { f.deaf = true })
		for range 21 {
			f.reconfirm()
			time.Sleep(100 * time.Millisecond)
		}
		wantLive(t, inbox, false)
		told.want(t, "up", "down")
	})
}

// A timer that fires at the moment it is set anew must not act for the old
// setting: here, condemn a probe that has only just been published.
func TestTimerOfTheLastStageDoesNotJudgeTheNext(t *testing.T) {
	t.Parallel()
	for range 300 {
		inBubble(t, func(f *fakeSource) { f.mute, f.hold = true, true }, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
			time.Sleep(5 * time.Second)
			f.reconfirm() // the very moment at which the confirmation is overdue
			synctest.Wait()
			if err := told.lastWhy(); err != nil && !errors.Is(err, pubsub.ErrNotConfirmed) {
				t.Fatalf("why: got %v, want none or %v", err, pubsub.ErrNotConfirmed)
			}
		})
	}
}

func gapsOf(times []time.Time) []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(times); i++ {
		gaps = append(gaps, times[i].Sub(times[i-1]))
	}
	return gaps
}
