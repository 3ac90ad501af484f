// SPDX-License-Identifier: Apache-2.0

package timerleak_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/timerleak"
)

// here is what the path of whoever makes timers in this file begins with.
const here = "github.com/asynclock/asynclock-go/internal/timerleak_test."

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

// Timers that were stopped are not found, however many others go on.
func TestStoppedTimersAreNotFound(t *testing.T) {
	for range 1000 {
		other := time.AfterFunc(time.Hour, func() {})
		defer other.Stop()
	}
	defer timerleak.Watch()()
	for range 10 {
		time.AfterFunc(time.Hour, func() {}).Stop()
	}
	if err := timerleak.Find(here); err != nil {
		t.Errorf("got %v, want nothing", err)
	}
}

// What others made, and what was made before, is not reported.
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
