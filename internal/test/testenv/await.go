// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	readyLimit = 30 * time.Second      // for one thing to become ready
	readyPause = 50 * time.Millisecond // between two questions
)

// await asks until the answer is nil. It gives up after the limit, with the
// last answer, and at once when a server has ended.
func await(ctx context.Context, what string, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	answer := errors.New("no answer")
	for {
		err := check(limited)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errEnded):
			return fmt.Errorf("%s: %w", what, err)
		case limited.Err() != nil: // which is no answer
			return fmt.Errorf("%s: not ready after %v: %w", what, readyLimit, answer)
		}
		answer = err
		select {
		case <-limited.Done():
		case <-time.After(readyPause):
		}
	}
}
