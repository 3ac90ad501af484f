// SPDX-License-Identifier: Apache-2.0

package once

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// after returns what is found when a job has run in the intervals with these numbers, of a second each.
func after(intervals ...int64) (f found) {
	for _, n := range intervals {
		f = f.ran(n, time.Second)
	}
	return f
}

// ran returns what is found after one more run.
func (f found) ran(interval int64, every time.Duration) found {
	start := time.Unix(interval, 0).UTC()
	return found{info: &RunInfo{Start: start}, start: start, skipped: f.with(start, every)}
}

func TestWhichIntervalsAreFree(t *testing.T) {
	damaged := found{start: time.Unix(20, 0), skipped: skipped{before: time.Unix(20, 0)}}
	if damaged.isFree(time.Unix(6, 0), time.Second) {
		t.Error("a stretch without a beginning: interval 6 is free")
	}
	for _, c := range []struct {
		what  string
		ran   []int64
		every time.Duration
		free  []int64
		done  []int64
	}{
		{"nothing is recorded", nil, time.Second, []int64{1, 2, 3}, nil},
		{"one run: what ran before may have been forgotten", []int64{5}, time.Second, []int64{6, 7}, []int64{1, 4, 5}},
		{"one run after the other", []int64{5, 6, 7}, time.Second, []int64{8, 9}, []int64{1, 5, 6, 7}},
		{"the clock was ahead for a run", []int64{5, 20}, time.Second, []int64{6, 19, 21}, []int64{4, 5, 20}},
		{"and for another", []int64{5, 20, 21}, time.Second, []int64{6, 19, 22}, []int64{4, 5, 20, 21}},
		{"and was set right", []int64{5, 20, 21, 6}, time.Second, []int64{7, 19, 22}, []int64{5, 6, 20, 21}},
		{"and went on", []int64{5, 20, 21, 6, 7, 9}, time.Second, []int64{10, 19, 22}, []int64{5, 7, 8, 9, 20, 21}},
		{"and came to where it had been", []int64{5, 8, 6, 7, 9}, time.Second, []int64{10, 11}, []int64{5, 6, 7, 8, 9}},
		{"another attempt", []int64{5, 20, 6, 6}, time.Second, []int64{7, 19, 21}, []int64{5, 6, 20}},
		{"a second stretch", []int64{5, 20, 40}, time.Second, []int64{21, 39, 41}, []int64{6, 19, 20, 40}},
		{"longer intervals: a run was in the last of them", []int64{5, 20}, 4 * time.Second, []int64{8, 12, 16, 24}, []int64{4, 17, 20}},
	} {
		f := after(c.ran...)
		for _, n := range c.free {
			if !f.isFree(time.Unix(n, 0), c.every) {
				t.Errorf("%s: interval %d is not free", c.what, n)
			}
		}
		for _, n := range c.done {
			if f.isFree(time.Unix(n, 0), c.every) {
				t.Errorf("%s: interval %d is free, want it done", c.what, n)
			}
		}
	}
}

// A clock that jumps as it likes never gives an interval a second run.
func TestNoIntervalIsFreeTwice(t *testing.T) {
	again := 0
	for range 2000 {
		ran := make(map[int64]bool)
		var f found
		now := int64(1000)
		for range 100 {
			switch rand.N(10) {
			case 0:
				now += rand.Int64N(50)
			case 1:
				now -= rand.Int64N(50)
			default:
				now++
			}
			if !f.isFree(time.Unix(now, 0), time.Second) {
				continue
			}
			if ran[now] {
				t.Fatalf("interval %d is free a second time, with %+v", now, f.skipped)
			}
			if now < f.lastStart().Unix() {
				again++
			}
			ran[now] = true
			f = f.ran(now, time.Second)
			read, err := decode(asynclock.Note{Data: (&RunInfo{Start: f.start, Began: f.start, Attempt: 1}).encode(f.skipped), Token: 1})
			if err != nil || read.skipped != f.skipped {
				t.Fatalf("got %+v, error %v; want %+v", read.skipped, err, f.skipped)
			}
		}
	}
	if again == 0 {
		t.Error("no interval ran behind a clock that had been ahead")
	}
}
