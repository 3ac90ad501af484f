// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	readyLimit = time.Minute           // for one thing to become so, on a busy machine
	readyPause = 10 * time.Millisecond // between two questions
)

// Await asks until the answer is nil. It gives up after a minute, with the last answer,
// and at once when ctx ends or the answer is that a server has ended.
func Await(ctx context.Context, what string, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	answer := errors.New("no answer")
	for {
		err := check(limited)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case errors.Is(err, errEnded):
			return fmt.Errorf("%s: %w", what, err)
		case limited.Err() != nil: // which is no answer
			return fmt.Errorf("%s: not so after %v: %w", what, readyLimit, answer)
		}
		answer = err
		select {
		case <-limited.Done():
		case <-time.After(readyPause):
		}
	}
}
