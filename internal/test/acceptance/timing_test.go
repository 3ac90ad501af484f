// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"
	"time"
)

func TestStalledStoryIsToldAgain(t *testing.T) {
	t.Parallel()
	told := 0
	tell(t, openMemory, func(env *Env) {
		if told++; told == 1 {
			env.timing.note(steady)
			env.mistimed("what could not be measured")
		}
	})
	if told != 2 {
		t.Errorf("tellings: got %d, want 2", told)
	}
}

func TestStallIsMeasured(t *testing.T) {
	t.Parallel()
	m := newTiming(t)
	m.mu.Lock() // keeps it from looking, as a stall would
	time.Sleep(steady)
	m.mu.Unlock()
	if _, stall := m.take(); stall < steady {
		t.Errorf("stall: got %v, want at least %v", stall, steady)
	}
}
