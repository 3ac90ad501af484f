// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A diary notes which tasks fired, and when.
type diary struct {
	start Instant
	mu    sync.Mutex
	lines []string
}

// A task writes its name into the diary.
type task struct {
	*diary
	name  string
	takes time.Duration
}

func (k *task) Fire(now Instant) {
	k.mu.Lock()
	k.lines = append(k.lines, k.name+" at "+now.Sub(k.start).String())
	k.mu.Unlock()
	time.Sleep(k.takes)
}

func (d *diary) entry(name string) *Entry { return &Entry{Task: &task{diary: d, name: name}} }

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("fired: got %q, want %q", d.lines, lines)
	}
}

// bubble runs a test with a watchdog and virtual time.
func bubble(t *testing.T, test func(*testing.T, *Watchdog, *diary)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer w.Close()
		synctest.Wait()
		test(t, w, &diary{start: Now()})
	})
}

func TestEntriesFireInOrderAndOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *Watchdog, d *diary) {
		for name, after := range map[string]time.Duration{
			"c": 3 * time.Hour, "a": 1500 * time.Millisecond, "d": 3*time.Hour + 1, "b": 2 * time.Second,
		} {
			if !w.Set(d.entry(name), d.start.Add(after)) {
				t.Error("Set: got false, want true")
			}
		}
		time.Sleep(1500*time.Millisecond - 1)
		d.want(t)
		time.Sleep(4 * time.Hour)
		d.want(t, "a at 1.5s", "b at 2s", "c at 3h0m0s", "d at 3h0m0.000000001s")
	})
}

func TestAnEarlierEntryIsNotLate(t *testing.T) {
	bubble(t, func(t *testing.T, w *Watchdog, d *diary) {
		w.Set(d.entry("late"), d.start.Add(time.Hour))
		synctest.Wait()
		w.Set(d.entry("early"), d.start.Add(10*time.Millisecond))
		time.Sleep(20 * time.Millisecond)
		d.want(t, "early at 10ms")
		w.Set(d.entry("overdue"), d.start)
		d.want(t, "early at 10ms", "overdue at 20ms")
	})
}

func TestSetAgainMovesAnEntry(t *testing.T) {
	bubble(t, func(t *testing.T, w *Watchdog, d *diary) {
		e, other := d.entry("e"), d.entry("other")
		w.Set(other, d.start.Add(3*time.Second))
		w.Set(e, d.start.Add(5*time.Second))
		w.Set(e, d.start.Add(time.Second))
		time.Sleep(2 * time.Second)
		d.want(t, "e at 1s")
		w.Set(e, d.start.Add(2500*time.Millisecond))
		w.Set(e, d.start.Add(4*time.Second))
		time.Sleep(8 * time.Second)
		d.want(t, "e at 1s", "other at 3s", "e at 4s")
	})
}

func TestRemovedEntriesDoNotFire(t *testing.T) {
	bubble(t, func(t *testing.T, w *Watchdog, d *diary) {
		entries := make([]*Entry, 5)
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			entries[i] = d.entry(name)
			w.Set(entries[i], d.start.Add(time.Duration(i+1)*time.Second))
		}
		w.Remove(entries[0])
		w.Remove(entries[3])
		w.Remove(entries[3]) // again does no harm
		time.Sleep(time.Minute)
		d.want(t, "b at 2s", "c at 3s", "e at 5s")
	})
}

func TestCloseReturnsWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, w *Watchdog, d *diary) {
		e := d.entry("e")
		w.Set(d.entry("fired"), d.start.Add(time.Second))
		w.Set(e, d.start.Add(time.Minute))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := w.Close(); !reflect.DeepEqual(got, []Task{e.Task}) {
			t.Errorf("Close: got %v, want the one task that is left", got)
		}
		if w.Set(e, d.start.Add(time.Minute)) {
			t.Error("Set after Close: got true, want false")
		}
		w.Remove(e)
		if got := w.Close(); len(got) != 0 {
			t.Errorf("Close again: got %v, want nothing", got)
		}
		time.Sleep(time.Hour)
		d.want(t, "fired at 1s")
	})
}

// A call of Set waits for a few other entries at most.
func TestManyDueEntriesAreTakenAFewAtATime(t *testing.T) {
	t.Parallel()
	w := &Watchdog{look: make(chan struct{}, 1)}
	now := Now()
	for i := range 1000 {
		w.Set(&Entry{}, now.Add(-time.Duration(i)))
	}
	taken := 0
	for {
		due, next := w.takeDue(now)
		if len(due) == 0 {
			break
		}
		if taken += len(due); len(due) > dueAtOnce || taken < 1000 && next > now {
			t.Fatalf("got %d entries at once, and to look again in %v; want at most %d, and at once", len(due), next.Sub(now), dueAtOnce)
		}
	}
	if taken != 1000 {
		t.Errorf("got %d entries, want all 1000", taken)
	}
}
