// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The demo as a whole, with its processes, is tested in package cli, which has
// the command that the processes run.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCounter(t *testing.T) {
	c, err := openCounter(filepath.Join(t.TempDir(), "counter"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, _, err := c.read(); err == nil {
		t.Error("got no error for an empty file")
	}
	for _, want := range []struct{ value, token int64 }{{math.MaxInt64, math.MaxInt64}, {0, 0}, {7, 1795234245799756}} {
		if err := c.write(want.value, want.token); err != nil {
			t.Fatal(err)
		}
		value, token, err := c.read()
		if value != want.value || token != want.token || err != nil {
			t.Errorf("got %d, %d, %v, want %+v", value, token, err, want)
		}
	}
}

// newLedger starts a ledger for a test.
func newLedger(t *testing.T) *ledger {
	t.Helper()
	l, err := openLedger()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.close()
		http.DefaultClient.CloseIdleConnections()
	})
	return l
}

func TestLedgerRefusesSmallerTokens(t *testing.T) {
	l := newLedger(t)
	for _, c := range []struct {
		token    int64
		accepted bool
	}{{5, true}, {5, true}, {4, false}, {9, true}, {8, false}, {5, false}, {10, true}} {
		stamp, err := fence.NewStamp(key, c.token)
		if err != nil {
			t.Fatal(err)
		}
		accepted, reason, err := writeToLedger(t.Context(), l.url, stamp)
		if accepted != c.accepted || err != nil {
			t.Errorf("token %d: got %v, %v, want %v", c.token, accepted, err, c.accepted)
		}
		if !accepted && !strings.Contains(reason, "is older than") {
			t.Errorf("token %d: got reason %q, want it to say why", c.token, reason)
		}
	}
	answer := httptest.NewRecorder()
	l.server.Handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	if answer.Code != http.StatusPreconditionRequired {
		t.Errorf("got %d for a write without a token, want 428", answer.Code)
	}
}

// TestConclusion: one update lost under the lock makes the demo fail, any number
// lost without it does not.
func TestConclusion(t *testing.T) {
	for _, c := range []struct {
		race, guarded outcome
		want          error
	}{
		{outcome{100, 20}, outcome{100, 100}, nil},
		{outcome{100, 20}, outcome{100, 99}, ErrUnsafe},
		{outcome{100, 20}, outcome{99, 100}, ErrUnsafe}, // counted twice is as wrong
	} {
		var out bytes.Buffer
		d := &show{screen: newScreen(&out), crew: &crew{}, race: c.race, guarded: c.guarded}
		if err := d.conclude(time.Second); !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v, want %v", c.guarded, err, c.want)
		}
		if good := strings.Contains(out.String(), "No update made under the lock was lost."); good != (c.want == nil) {
			t.Errorf("%+v: got %q", c.guarded, out.String())
		}
	}
}

func TestRate(t *testing.T) {
	var r rate
	now := time.Now()
	if got := r.perSecond(); got != 0 {
		t.Errorf("got %d of nothing, want 0", got)
	}
	for i := range 31 { // three seconds at 500/s, noted each 100 ms
		r.note(now.Add(time.Duration(i)*100*time.Millisecond), 50*i)
	}
	if got := r.perSecond(); got != 500 {
		t.Errorf("got %d, want 500", got)
	}
	for i := range 11 { // then a second of nothing
		r.note(now.Add(3*time.Second+time.Duration(i)*100*time.Millisecond), 1500)
	}
	if got := r.perSecond(); got != 0 {
		t.Errorf("got %d after a second without, want 0", got)
	}
	if len(r.samples) > 12 {
		t.Errorf("got %d samples kept, want a second's worth", len(r.samples))
	}
}

// TestScreen: the panel is redrawn in place below the story, and cut to the
// terminal's width.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, live: true, color: true, width: func() int { return 10 }}
	s.show([]string{"one", s.paint(red, "0123456789abc")})
	s.say("told %d", 1)
	s.show([]string{"two"})
	s.close()
	want := "one\n" + red + "012345678" + plain + "\n" +
		"\x1b[2A\r" + eraseBelow + "told 1\n" +
		"two\n" +
		"\x1b[1A\r" + eraseBelow + showCursor
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A workerTest drives a worker over its pipes.
type workerTest struct {
	t       *testing.T
	orders  *json.Encoder
	reports *json.Decoder
	counter counter
	ended   chan error
}

func startWorker(t *testing.T, client *asynclock.Client) *workerTest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "counter")
	c, err := openCounter(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write(0, 0); err != nil {
		t.Fatal(err)
	}
	ledger := newLedger(t)
	orders, toWorker := io.Pipe()
	fromWorker, reports := io.Pipe()
	w := &workerTest{t, json.NewEncoder(toWorker), json.NewDecoder(fromWorker), c, make(chan error, 1)}
	go func() {
		err := Work(context.Background(), client, path, ledger.url, orders, reports)
		reports.Close()
		w.ended <- err
	}()
	t.Cleanup(func() {
		toWorker.Close()
		fromWorker.Close()
		c.close()
	})
	return w
}

func (w *workerTest) order(do string) {
	w.t.Helper()
	if err := w.orders.Encode(order{do}); err != nil {
		w.t.Error(err)
	}
}

// expect reads reports up to the first that says did.
func (w *workerTest) expect(did string) report {
	w.t.Helper()
	for {
		var r report
		if err := w.reports.Decode(&r); err != nil {
			w.t.Fatalf("got %v while waiting for %q", err, did)
		}
		if r.Did == did {
			return r
		}
	}
}

func newClient(t *testing.T) *asynclock.Client {
	t.Helper()
	client, err := asynclock.New(memstore.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

func TestWorker(t *testing.T) {
	client := newClient(t)
	w := startWorker(t, client)
	w.expect(didRest)
	w.order(doRace)
	w.expect(didUpdate)
	w.order(doGuard)
	first := w.expect(didTake)
	second := w.expect(didTake)
	if second.Token <= first.Token {
		t.Errorf("got tokens %d and %d, want them to rise", first.Token, second.Token)
	}
	go w.order(doRest) // the worker reports meanwhile, and somebody has to read
	rested := w.expect(didRest)
	if value, _, err := w.counter.read(); value != rested.Updates || err != nil {
		t.Errorf("got %d, %v, want %d updates", value, err, rested.Updates)
	}
	w.order(doHold)
	w.expect(didTake)
	w.order(doWrite)
	w.expect(didWrite)
	if _, err := client.ForceUnlock(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
	if lost := w.expect(didLose); lost.Text != asynclock.ErrForced.Error() {
		t.Errorf("got %q, want %q", lost.Text, asynclock.ErrForced)
	}
	w.order(doRest)
	w.expect(didRest)
}

// TestWorkerLeavesTheQueue when told to do something else.
func TestWorkerLeavesTheQueue(t *testing.T) {
	client := newClient(t)
	lease, err := client.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, client)
	w.order(doHold)
	w.expect(didWait)
	w.order(doRest)
	w.expect(didRest)
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err = client.Lock(t.Context(), key) // a grant to the worker would come back unclaimed
	if err != nil {
		t.Fatalf("got %v, want the key", err)
	}
	lease.Unlock(t.Context())
}

// TestWorkerNoticesTokensThatFall: the demo would not pass a lock whose tokens
// don't rise.
func TestWorkerNoticesTokensThatFall(t *testing.T) {
	w := startWorker(t, newClient(t))
	w.expect(didRest)
	if err := w.counter.write(1, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	w.order(doGuard)
	w.expect(didTake)
	if err := <-w.ended; err == nil || !strings.Contains(err.Error(), "came after token") {
		t.Errorf("got %v, want it to complain of the token", err)
	}
}

// TestWorkerEndsWithItsStdin, whatever it is doing.
func TestWorkerEndsWithItsStdin(t *testing.T) {
	for _, do := range []string{doRest, doHold} {
		orders, toWorker := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- Work(context.Background(), newClient(t), filepath.Join(t.TempDir(), "counter"), "", orders, io.Discard)
		}()
		if err := json.NewEncoder(toWorker).Encode(order{do}); err != nil {
			t.Fatal(err)
		}
		toWorker.Close()
		if err := <-ended; err != nil {
			t.Errorf("%s: got %v, want nil", do, err)
		}
	}
}
