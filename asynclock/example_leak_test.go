// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A lines is a channel of log lines.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// An early return forgets the lease, and the log says so.
func ExampleWithLeakDetection() {
	store, log := memstore.New(), make(lines, 10)
	logger := slog.New(slog.NewTextHandler(log, nil))
	locks, err := asynclock.New(store, asynclock.WithLeakDetection(true), asynclock.WithLogger(logger))
	if err != nil {
		fmt.Println(err)
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	defer locks.Close(ended) // or it would wait for the lease

	book := func(sold bool) error {
		lease, err := locks.Lock(context.Background(), "seat:12A")
		if err != nil || sold {
			return err
		}
		return lease.Unlock(context.Background())
	}
	fmt.Println(book(true))
	for {
		runtime.GC() // as happens in any program that goes on
		select {
		case line := <-log:
			for _, part := range []string{"a lease was forgotten", "example_leak_test.go:", "key=seat:12A"} {
				fmt.Println(part, strings.Contains(line, part))
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	// Output:
	// <nil>
	// a lease was forgotten true
	// example_leak_test.go: true
	// key=seat:12A true
}
