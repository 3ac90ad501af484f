// SPDX-License-Identifier: Apache-2.0

package quorumstore

import "time"

const (
	// doorsMoment is how much longer than a majority the door may take. It knows who waits.
	doorsMoment = 20 * time.Millisecond
	// leastMoment is how much longer other nodes may take, at least. Otherwise it is once more as long.
	leastMoment = 100 * time.Microsecond
)

// A moment is the time that nodes have beyond a majority. So a node that is far away or hangs delays nobody, and the
// usual case, that all answer at once, is settled everywhere.
type moment struct {
	since time.Time
	timer *time.Timer
	over  <-chan time.Time // it may be nil, when the moment has not begun
	door  bool
}

// startMoment is called when nodes are asked.
func startMoment() moment { return moment{since: time.Now()} }

// begin is called when a majority has answered, after each answer. Without the door it is longer.
func (m *moment) begin(door bool) {
	switch {
	case m.timer == nil && door:
		m.timer = time.NewTimer(min(max(time.Since(m.since), leastMoment), doorsMoment))
	case m.timer == nil:
		m.timer = time.NewTimer(doorsMoment)
	case door && !m.door:
		m.timer.Reset(min(max(time.Since(m.since), leastMoment), doorsMoment))
	}
	m.door, m.over = door, m.timer.C
}

func (m *moment) end() {
	if m.timer != nil {
		m.timer.Stop()
	}
}
