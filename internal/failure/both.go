// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"strings"

	"github.com/asynclock/asynclock-go/store"
)

// Both returns an error that matches what work under a lease has returned, and the loss of the lease. Work that
// was ended by the loss mostly returns it too. Then the text says it once. Either error may be nil.
func Both(work, loss error) error {
	switch {
	case loss == nil:
		return work
	case work == nil:
		return loss
	}
	return &both{work, loss}
}

type both struct{ work, loss error }

func (e *both) Unwrap() []error { return []error{e.work, e.loss} }

func (e *both) Error() string {
	said := e.work.Error()
	for cause := e.loss; cause != nil && cause != store.ErrLost; cause = only(cause) { //nolint:errorlint // a cause that wraps ErrLost says more
		switch text := Text(cause); {
		case text == Text(e.work): // the loss says more
			return e.loss.Error()
		case strings.Contains(said, text):
			return said
		}
	}
	return said + "\n" + e.loss.Error()
}

// only returns what the error wraps, or nil if that is nothing or more than one.
func only(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		if all := several.Unwrap(); len(all) == 1 {
			return all[0]
		}
	}
	return errors.Unwrap(err)
}
