// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strings"
	"time"
)

// A waitLimit is how long to wait for a lock; it is a flag's value.
type waitLimit time.Duration

const forever waitLimit = -1

// String and the methods below it make a waitLimit a pflag.Value.
func (w *waitLimit) String() string {
	if *w == forever {
		return "forever"
	}
	return time.Duration(*w).String()
}

// Set parses the flag's text.
func (w *waitLimit) Set(text string) error {
	if text == "forever" {
		*w = forever
		return nil
	}
	duration := text
	if text != "" && strings.Trim(text, "0123456789.") == "" { // of seconds, as flock takes it
		duration += "s"
	}
	d, err := time.ParseDuration(duration)
	if err != nil || d < 0 {
		return errors.New(`not "forever", a number of seconds, or a duration like 500ms or 10m`)
	}
	*w = waitLimit(d)
	return nil
}

// Type names the value in the help text.
func (w *waitLimit) Type() string { return "duration" }

// context returns a context that ends with the wait.
func (w waitLimit) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if w == forever {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(w))
}
