// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
)

// withUrgent is inBubble with a handler that takes what begins with an exclamation
// mark at once.
func withUrgent(t *testing.T, story func(*testing.T, *fakeSource, *recorder, *pubsub.Inbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, told := newFakeSource(), &recorder{}
		handler := told.handler()
		var inbox *pubsub.Inbox
		handler.Urgent = func(payload string) bool {
			if !inbox.Live() { // it may ask for that
				t.Errorf("%q arrived at an inbox that is not live", payload)
			}
			urgent := strings.HasPrefix(payload, "!")
			if urgent || strings.HasPrefix(payload, pubsub.ProbePrefix) {
				told.note(payload, nil)
			}
			return urgent
		}
		inbox = pubsub.Open(f, handler)
		defer inbox.Close()
		synctest.Wait()
		story(t, f, told, inbox)
	})
}

func TestUrgentMessagesAreTakenAtOnce(t *testing.T) {
	t.Parallel()
	withUrgent(t, func(t *testing.T, f *fakeSource, told *recorder, _ *pubsub.Inbox) {
		unblock := told.stall(f)
		f.deliver("later")
		told.change(nil) // what is urgent does not wait with the others
		f.deliver("!now")
		if want := []string{"up", "stall", "!now"}; !slices.Equal(told.calls, want) {
			t.Errorf("when the delivery has returned: got %q, want %q", told.calls, want)
		}
		unblock()
		told.want(t, "up", "stall", "!now", "later")
	})
}

// Proofs go on, and nobody but the inbox sees them.
func TestProbesAreNotUrgent(t *testing.T) {
	t.Parallel()
	withUrgent(t, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		f.deliver(pubsub.ProbePrefix + "forged")
		time.Sleep(time.Minute)
		wantLive(t, inbox, true)
		told.want(t, "up")
	})
}

func TestCloseWaitsForWhatIsUrgent(t *testing.T) {
	t.Parallel()
	withUrgent(t, func(t *testing.T, f *fakeSource, told *recorder, inbox *pubsub.Inbox) {
		gate := make(chan struct{})
		told.change(gate)
		go f.deliver("!busy")
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			inbox.Close()
			close(done)
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Close has returned while the handler is being called")
		default:
		}
		close(gate)
		<-done
		f.deliver("!late") // nobody is asked
		told.want(t, "up", "!busy")
	})
}
