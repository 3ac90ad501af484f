// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// An outage is for commands that look again and again. They survive a server that can't be reached for a while, if it
// could be reached before, and say so once.
type outage struct {
	say     func(format string, args ...any)
	reached bool // a look had an answer
	said    bool // since the last answer
}

// survive returns the error of a look that ends the command, or nil. After nil, ok says whether the look had an answer.
func (o *outage) survive(err error) (ok bool, fatal error) {
	switch {
	case err == nil:
		if o.said {
			o.say("the server answers again")
		}
		o.reached, o.said = true, false
		return true, nil
	case !isOutage(err):
		return false, err
	case !o.reached:
		return false, &exitError{code: exitUnreachable, err: err} // a look that was not answered is no wait that is over
	case !o.said:
		o.say("%s; going on", message(err))
		o.said = true
	}
	return false, nil
}

// overdue has it said that there is no answer yet if end is not called for so long. A look of which nobody knows how long it
// may take goes on then.
func (o *outage) overdue(after time.Duration) (end func()) {
	done := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(done)
		if !o.said {
			o.say("the server has not answered for %s; going on", plain.Seconds(after))
			o.said = true
		}
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// isOutage reports whether an error means that the server can't be reached, or does not answer.
func isOutage(err error) bool {
	return errors.Is(err, asynclock.ErrUnreachable) || errors.Is(err, asynclock.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded)
}
