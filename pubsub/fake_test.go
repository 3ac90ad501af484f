// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/pubsub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeSource is a channel on a server that misbehaves as told. The fields
// above receives are its behavior, to be changed in change.
type fakeSource struct {
	mu           sync.Mutex
	refuse       error         // Receive returns it at once
	mute         bool          // subscriptions are not acknowledged
	deaf         bool          // what is published is dropped
	hold         bool          // what is published waits for release
	copies       int           // how often each message is delivered
	publishErr   error         // Publish returns it, having sent nothing
	stuckReceive chan struct{} // Receive does not end before this is closed
	stuckPublish chan struct{} // nor does Publish

	receives   []time.Time // when Receive was called
	publishes  []time.Time // when Publish was called
	probes     []string
	held       []string
	receiving  int // how many Receive calls run
	publishing int
	crowded    bool // there were two of either
	confirm    func()
	deliver    func(string)
	end        chan error
}

func newFakeSource() *fakeSource {
	return &fakeSource{copies: 1, end: make(chan error)}
}

func (f *fakeSource) change(behave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	behave()
}

func (f *fakeSource) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	f.mu.Lock()
	f.receives = append(f.receives, time.Now())
	f.receiving++
	f.crowded = f.crowded || f.receiving > 1
	f.confirm, f.deliver = confirmed, deliver
	refuse, mute, stuck := f.refuse, f.mute, f.stuckReceive
	f.mu.Unlock()
	defer f.change(func() { f.receiving-- })

	if refuse != nil {
		return refuse
	}
	if !mute {
		confirmed()
	}
	if stuck != nil {
		<-stuck
	}
	select {
	case err := <-f.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeSource) Publish(_ context.Context, payload string) error {
	f.mu.Lock()
	f.publishes = append(f.publishes, time.Now())
	f.publishing++
	f.crowded = f.crowded || f.publishing > 1
	if strings.HasPrefix(payload, pubsub.ProbePrefix) {
		f.probes = append(f.probes, payload)
	}
	err, stuck := f.publishErr, f.stuckPublish
	f.mu.Unlock()
	defer f.change(func() { f.publishing-- })

	if stuck != nil {
		<-stuck
	}
	if err == nil {
		f.send(payload)
	}
	return err
}

// send is what the server does with a published message.
func (f *fakeSource) send(payload string) {
	f.mu.Lock()
	deliver, copies := f.deliver, f.copies
	switch {
	case f.hold:
		f.held = append(f.held, payload)
		copies = 0
	case f.deaf || f.receiving == 0:
		copies = 0
	}
	f.mu.Unlock()
	for range copies {
		deliver(payload)
	}
}

// release delivers what was held.
func (f *fakeSource) release() {
	f.mu.Lock()
	held := f.held
	f.hold, f.held = false, nil
	f.mu.Unlock()
	for _, payload := range held {
		f.send(payload)
	}
}

// reconfirm is a reconnect inside Receive.
func (f *fakeSource) reconfirm() {
	f.mu.Lock()
	confirm := f.confirm
	f.mu.Unlock()
	confirm()
}

// A recorder is a handler that writes down what it is told: "up", "down" or
// the payload of a message.
type recorder struct {
	mu    sync.Mutex
	calls []string
	why   []error       // for each "down"
	gate  chan struct{} // if not nil, each call waits for it to be closed
}

func (r *recorder) handler() pubsub.Handler {
	return pubsub.Handler{
		Message: func(payload string) { r.note(payload, nil) },
		Up:      func() { r.note("up", nil) },
		Down:    func(err error) { r.note("down", err) },
	}
}

func (r *recorder) note(call string, err error) {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	if call == "down" {
		r.why = append(r.why, err)
	}
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// stall sends a message, "stall", whose call of the handler does not return
// until the returned function is called.
func (r *recorder) stall(f *fakeSource) (unblock func()) {
	synctest.Wait() // earlier calls are not meant
	gate := make(chan struct{})
	r.mu.Lock()
	r.gate = gate
	r.mu.Unlock()
	f.deliver("stall")
	synctest.Wait()
	return func() {
		r.mu.Lock()
		r.gate = nil
		r.mu.Unlock()
		close(gate)
	}
}

// want checks all that the handler was told so far, after everything that can
// happen now has happened.
func (r *recorder) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.calls, want) {
		t.Fatalf("handler was told: got %q, want %q", r.calls, want)
	}
}

// lastWhy is the error of the last Down.
func (r *recorder) lastWhy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.why) == 0 {
		return nil
	}
	return r.why[len(r.why)-1]
}

// inBubble runs a story in virtual time, with an inbox that is closed at its
// end. Told how, the source misbehaves from the start.
func inBubble(t *testing.T, misbehave func(*fakeSource), story func(*testing.T, *fakeSource, *recorder, *pubsub.Inbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		source, told := newFakeSource(), &recorder{}
		if misbehave != nil {
			misbehave(source)
		}
		inbox := pubsub.Open(source, told.handler())
		defer inbox.Close(context.Background())
		story(t, source, told, inbox)
		synctest.Wait()
		source.mu.Lock()
		defer source.mu.Unlock()
		if source.crowded {
			t.Error("Receive or Publish was called while another such call was running")
		}
	})
}

func wantLive(t *testing.T, inbox *pubsub.Inbox, want bool) {
	t.Helper()
	synctest.Wait()
	if got := inbox.Live(); got != want {
		t.Fatalf("Live: got %v, want %v", got, want)
	}
}

func wantSettled(t *testing.T, inbox *pubsub.Inbox, want bool) {
	t.Helper()
	synctest.Wait()
	select {
	case <-inbox.Settled():
		if !want {
			t.Fatal("Settled is closed before any verdict")
		}
	default:
		if want {
			t.Fatal("Settled is not closed after the first verdict")
		}
	}
}
