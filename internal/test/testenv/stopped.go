// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopped is why the work ended early, as the cause of its context.
type stopped struct{ signal syscall.Signal }

func (s *stopped) Error() string { return "stopped by " + s.signal.String() }

// exitCode is what a shell would report.
func (s *stopped) exitCode() int { return 128 + int(s.signal) }

// stopOrder returns the order that ended ctx, or nil.
func stopOrder(ctx context.Context) *stopped {
	var s *stopped
	errors.As(context.Cause(ctx), &s)
	return s
}

// untilStopped returns a context that ends, with a *stopped as its cause, when
// the program is told to stop or its parent is gone. The parent matters because
// go run hands no signals on: it dies, and its child would stay. A second
// signal kills the program at once.
func untilStopped() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	orphaned := time.NewTicker(time.Second)
	finished := make(chan struct{})
	go func() { // ends with ctx, and release waits for it
		defer close(finished)
		defer orphaned.Stop()
		defer signal.Stop(signals)
		for {
			select {
			case s := <-signals:
				cancel(&stopped{s.(syscall.Signal)})
				return
			case <-orphaned.C:
				if os.Getppid() != parent {
					cancel(&stopped{syscall.SIGTERM})
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-finished
	}
}
