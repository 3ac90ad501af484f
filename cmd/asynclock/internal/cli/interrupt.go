// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// interruption returns the error for a signal that ended us while we waited for key.
func interruption(s os.Signal, key string) error {
	number, _ := s.(syscall.Signal)
	return &exitError{code: exitSignal + int(number), err: fmt.Errorf("%v while waiting for %q", s, key)}
}

// interruptible returns the result of do, unless a signal ends us first. In that case do's context
// ends, nobody waits for do any longer, and a later result of do goes to undo.
func interruptible[T any](ctx context.Context, signals <-chan os.Signal, key string,
	do func(context.Context) (T, error), undo func(T),
) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	done := make(chan outcome, 1)
	go func() { // both goroutines end with do, or the process ends before
		value, err := do(ctx)
		done <- outcome{value, err}
	}()
	for {
		select {
		case got := <-done:
			return got.value, got.err
		case s := <-signals:
			if !endsUs(s) {
				continue
			}
			go func() {
				if got := <-done; got.err == nil {
					undo(got.value)
				}
			}()
			var none T
			return none, interruption(s, key)
		}
	}
}

// interrupted returns an error if a signal that ends us has already come.
func interrupted(signals <-chan os.Signal, key string) error {
	for {
		select {
		case s := <-signals:
			if endsUs(s) {
				return interruption(s, key)
			}
		default:
			return nil
		}
	}
}
