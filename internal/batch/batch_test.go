// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A receiver notes what is sent. While it is held, calls do not return.
type receiver struct {
	mu       sync.Mutex
	held     chan struct{}
	batches  []string
	underWay int
}

func newReceiver() *receiver { return &receiver{held: make(chan struct{})} }

func (r *receiver) send(lane int, batch []int) {
	r.mu.Lock()
	r.batches = append(r.batches, fmt.Sprint(lane, batch))
	r.underWay++
	r.mu.Unlock()
	<-r.held
	r.mu.Lock()
	r.underWay--
	r.mu.Unlock()
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

func add(t *testing.T, q *Queue[int], lane int, requests ...int) {
	t.Helper()
	for _, n := range requests {
		if !q.Add(lane, n) {
			t.Fatalf("Add of %d: got false, want true", n)
		}
	}
}

func TestLoadMakesBatchesLarger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		q := New(3, 1, 0, r.send)
		add(t, q, 0, 1)
		synctest.Wait()
		add(t, q, 0, 2, 3, 4, 5, 6, 7, 8)
		synctest.Wait()
		if got, want := r.got(), []string{"0 [1]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("with the first call under way: got %q, want %q", got, want)
		}
		close(r.held)
		q.Close()
		if got, want := r.got(), []string{"0 [1]", "0 [2 3 4]", "0 [5 6 7]", "0 [8]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("in the end: got %q, want %q", got, want)
		}
	})
}

// Requests that are added together are not parted by a call that begins at once.
func TestRequestsAddedTogetherGoTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		close(r.held)
		q := New(3, 2, 0, r.send)
		if !q.AddAll(7, []int{1, 2, 3}) {
			t.Error("AddAll: got false, want true")
		}
		synctest.Wait()
		if got, want := r.got(), []string{"7 [1 2 3]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		q.Close()
		if q.AddAll(7, []int{4}) {
			t.Error("AddAll after Close: got true, want false")
		}
	})
}

// Requests that are made at the same time, but one by one, go together.
func TestACallWaitsForCompany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		close(r.held)
		q := New(10, 1, time.Millisecond, r.send)
		add(t, q, 0, 1)
		time.Sleep(time.Millisecond - 1)
		synctest.Wait()
		add(t, q, 0, 2)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		add(t, q, 0, 3)
		q.Close()
		if got, want := r.got(), []string{"0 [1 2]", "0 [3]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestLanesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		q := New(10, 2, 0, r.send)
		for n := range 4 {
			add(t, q, 7, n)
			synctest.Wait()
		}
		if r.underWay != 2 {
			t.Errorf("calls at once in a lane: got %d, want 2", r.underWay)
		}
		add(t, q, 8, 100)
		synctest.Wait()
		if got, want := r.got(), []string{"7 [0]", "7 [1]", "8 [100]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("with lane 7 held up: got %q, want %q", got, want)
		}
		close(r.held)
		q.Close()
	})
}

func TestCloseSendsWhatIsQueued(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		q := New(10, 1, 0, r.send)
		add(t, q, 0, 1)
		synctest.Wait()
		add(t, q, 0, 2)
		closed := make(chan struct{})
		go func() {
			q.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close returned with a call under way")
		default:
		}
		if q.Add(0, 3) {
			t.Error("Add after Close: got true, want false")
		}
		close(r.held)
		<-closed
		if got, want := r.got(), []string{"0 [1]", "0 [2]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestIdleLanesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		close(r.held)
		q := New(10, 2, 0, r.send)
		for lane := range 100 {
			add(t, q, lane, lane)
		}
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		if got := len(q.lanes); got != 0 {
			t.Errorf("lanes of an idle queue: got %d, want 0", got)
		}
	})
}

// A call that lasts does not hold up the others of its lane, and counts again when it has ended.
func TestACallThatLastsIsOverlooked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver()
		q := New(2, 1, 0, r.send).Overlook(time.Second)
		add(t, q, 0, 1)
		synctest.Wait()
		add(t, q, 0, 2, 3, 4)
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if got, want := r.got(), []string{"0 [1]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("before it lasts: got %v, want %v", got, want)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if got, want := r.got(), []string{"0 [1]", "0 [2 3]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("when it lasts: got %v, want %v", got, want)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		add(t, q, 0, 5, 6, 7)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got, want := r.got(), []string{"0 [1]", "0 [2 3]", "0 [4]", "0 [5 6]", "0 [7]"}; !reflect.DeepEqual(got, want) {
			t.Errorf("when all last: got %v, want %v", got, want)
		}
		close(r.held)
		synctest.Wait()
		if len(q.lanes) != 0 {
			t.Errorf("lanes of an idle queue: got %d, want none", len(q.lanes))
		}
		r.held = make(chan struct{})
		add(t, q, 0, 8)
		synctest.Wait()
		add(t, q, 0, 9)
		synctest.Wait()
		if got := r.got(); len(got) != 6 {
			t.Errorf("calls at once after that: got %v, want one", got[5:])
		}
		close(r.held)
		q.Close()
	})
}
