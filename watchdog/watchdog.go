// SPDX-License-Identifier: Apache-2.0

// Package watchdog fires many timers from one goroutine, by a clock that counts suspend.
//
// A lock client has thousands of leases to renew and waiters to keep in their queues. A goroutine
// or a time.Timer for each would cost more than the lock. In this package each is an [Entry] of a
// few words in one heap. A [Watchdog] calls an entry's [Task] when the entry is due.
//
// Each time is an [Instant], of a clock that continues while the machine is suspended. If the
// system fires a timer late, or the process was stopped, all due entries are fired at once, with
// the true time. A task can thus end what has expired before other tasks renew the rest.
//
// Not promised: an entry may fire any amount late while the process does not run. A task that must
// not act late compares the given time with its own deadline.
//
// The package imports only the standard library and knows nothing of locks.
package watchdog

import (
	"container/heap"
	"sync"
	"time"
)

// A Task is called when its entry is due, on the watchdog's goroutine, so it must not block. It
// receives the time. Its entry is no longer scheduled when it is called.
type Task interface {
	Fire(now Instant)
}

// An Entry is one task's place in a watchdog. A zero Entry with Task set is ready for use. It
// belongs to one watchdog only.
type Entry struct {
	Task Task

	at    Instant
	place int // index in the heap plus one; 0: not scheduled
}

// A Watchdog fires entries at their time. Make one with [New].
type Watchdog struct {
	mu      sync.Mutex
	entries byTime
	alarm   Instant // when the goroutine will check next

	look   chan struct{} // to check again, because an entry is due before alarm
	stop   chan struct{}
	done   chan struct{}
	closed bool
}

// lookEvery is how long the goroutine sleeps at most while any entry is scheduled.
const lookEvery = time.Second

// never is later than any alarm.
const never = Instant(1<<63 - 1)

// New starts a watchdog: one goroutine, which Close ends.
func New() *Watchdog {
	w := &Watchdog{
		alarm: never,
		look:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	go w.run()
	return w
}

// Set schedules e for the given time and replaces its earlier time. After Close it does nothing and
// returns false.
func (w *Watchdog) Set(e *Entry, at Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	e.at = at
	if e.place == 0 {
		heap.Push(&w.entries, e)
	} else {
		heap.Fix(&w.entries, e.place-1)
	}
	// If the alarm comes early enough anyway, it is left alone. The common case, taking and giving
	// back a key over and over, is thus free of wake-ups.
	if at < w.alarm {
		w.alarm = at
		select {
		case w.look <- struct{}{}:
		default:
		}
	}
	return true
}

// Remove takes e from the schedule. A call of its task may be under way.
func (w *Watchdog) Remove(e *Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.place != 0 {
		heap.Remove(&w.entries, e.place-1)
	}
}

// Close stops the watchdog, waits for its goroutine, and returns the tasks that
// were still scheduled. None is called afterwards. It must not be called from a
// task.
func (w *Watchdog) Close() []Task {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.stop)
	}
	w.mu.Unlock()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	var left []Task
	for _, e := range w.entries {
		e.place = 0
		left = append(left, e.Task)
	}
	w.entries = nil
	return left
}

func (w *Watchdog) run() {
	defer close(w.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := Refresh()
		due, next := w.takeDue(now)
		for _, e := range due {
			e.Task.Fire(now)
		}
		if len(due) > 0 {
			continue // that took time, and tasks schedule more entries
		}
		if next == never {
			timer.Stop()
		} else {
			// Go's timers stand still during suspend, so a distant one would fire late by the time
			// slept. A check every second bounds the delay.
			timer.Reset(min(next.Sub(now), lookEvery))
		}
		select {
		case <-timer.C:
		case <-w.look:
		case <-w.stop:
			return
		}
	}
}

// dueAtOnce is how many entries are removed at most before others may lock the mutex. A client with
// many leases may have ten thousand entries due together. Removing all of them at once would take
// milliseconds, and callers that take a lock would wait for as long.
const dueAtOnce = 64

// takeDue removes the first due entries and returns when to check again.
func (w *Watchdog) takeDue(now Instant) (due []*Entry, next Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(due) < dueAtOnce && len(w.entries) > 0 && w.entries[0].at <= now {
		due = append(due, w.entries[0])
		heap.Pop(&w.entries)
	}
	w.alarm = never
	if len(w.entries) > 0 {
		w.alarm = w.entries[0].at
	}
	return due, w.alarm
}

// byTime is a heap of entries, the earliest first.
type byTime []*Entry

func (h byTime) Len() int           { return len(h) }
func (h byTime) Less(i, j int) bool { return h[i].at < h[j].at }

func (h byTime) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (h *byTime) Push(x any) {
	e := x.(*Entry)
	*h = append(*h, e)
	e.place = len(*h)
}

// Pop implements heap.Interface.
func (h *byTime) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = 0
	return e
}
