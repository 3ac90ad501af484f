// SPDX-License-Identifier: Apache-2.0

package watchdog_test

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/watchdog"
)

// A session ends if it is not used for a while.
type session struct {
	name     string
	deadline watchdog.Instant
	ended    chan<- string
}

// Fire is called when the session's entry is due.
func (s *session) Fire(now watchdog.Instant) {
	if now >= s.deadline {
		s.ended <- s.name + " ended"
	}
}

// One watchdog ends thousands of sessions without a goroutine or a timer for each.
func Example() {
	w := watchdog.New()
	defer w.Close()

	ended := make(chan string, 2)
	start := watchdog.Now()
	short := &session{name: "short", deadline: start.Add(10 * time.Millisecond), ended: ended}
	long := &session{name: "long", deadline: start.Add(time.Hour), ended: ended}
	entries := []watchdog.Entry{{Task: short}, {Task: long}}
	w.Set(&entries[0], short.deadline)
	w.Set(&entries[1], long.deadline)

	fmt.Println(<-ended)
	fmt.Println("scheduled:", len(w.Close()))
	// Output:
	// short ended
	// scheduled: 1
}
