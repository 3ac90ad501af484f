// SPDX-License-Identifier: Apache-2.0

package timerleak_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
)

// here is what the path of whoever makes timers in this file begins with.
const here = "github.com/asynclock/asynclock-go/internal/test/kit/timerleak_test."

// TestMain: what was not watched is not found, not even by chance.
func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0
	m.Run()
}

// Each way to leave something armed is found, and the same way to the end is not.
func TestArmedTimersAreFound(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, arm := range map[string]func() (disarm func()){
		"time.AfterFunc": func() func() {
			timer := time.AfterFunc(time.Hour, func() {})
			return func() { timer.Stop() }
		},
		"context.WithTimeout": func() func() {
			_, cancel := context.WithTimeout(context.Background(), time.Hour)
			return cancel
		},
		"context.WithTimeout of one that goes on": func() func() {
			_, cancel := context.WithTimeout(parent, time.Hour)
			return cancel
		},
		"context.AfterFunc": func() func() {
			stop := context.AfterFunc(parent, func() {})
			return func() { stop() }
		},
	} {
		end := timerleak.Watch()
		disarm := make([]func(), 10)
		for i := range disarm {
			disarm[i] = arm()
		}
		if err := timerleak.Find(here); err == nil || !strings.Contains(err.Error(), "10 by "+here) {
			t.Errorf("%s: got %v, want the ten that are armed", name, err)
		}
		for i := range disarm {
			disarm[i]()
			disarm[i] = nil
		}
		if err := timerleak.Find(here); err != nil {
			t.Errorf("%s, given up: got %v, want nothing", name, err)
		}
		end()
	}
}

// Timers that were stopped are not found, however many others go on that will fire
// before them and after.
func TestStoppedTimersAreNotFound(t *testing.T) {
	defer timerleak.Watch()()
	others := func(d time.Duration) {
		for range 1000 {
			other := time.AfterFunc(d, func() {})
			t.Cleanup(func() { other.Stop() })
		}
	}
	others(time.Hour)
	stop := armTen(2 * time.Hour)
	others(3 * time.Hour)
	if err := timerleak.Find(here + "armTen"); err == nil {
		t.Error("got nothing, want the ten that are armed")
	}
	stop()
	if err := timerleak.Find(here + "armTen"); err != nil {
		t.Errorf("got %v, want nothing", err)
	}
}

func armTen(d time.Duration) (stop func()) {
	var timers [10]*time.Timer
	for i := range timers {
		timers[i] = time.AfterFunc(d, func() {})
	}
	return func() {
		for i, timer := range timers {
			timer.Stop()
			timers[i] = nil
		}
	}
}

// Find does not report timers of other packages, or timers made before Watch.
func TestOthersTimersAreTheirs(t *testing.T) {
	before := time.AfterFunc(time.Hour, func() {})
	defer before.Stop()
	defer timerleak.Watch()()
	timer := time.AfterFunc(time.Hour, func() {})
	defer timer.Stop()
	if err := timerleak.Find("github.com/asynclock/asynclock-go/asynclock."); err != nil {
		t.Errorf("got %v, want nothing", err)
	}
}
