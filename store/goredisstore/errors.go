// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"fmt"

	"github.com/asynclock/asynclock-go/store"
)

// An OptionError names a field of go-redis' options that locks can't use as it is set. It shows no
// value, because that may be a password. It is an asynclock.ErrInvalidOption for errors.Is.
type OptionError struct {
	Options string // the type, such as redis.ClusterOptions
	Field   string // the field's name
	Reason  string // why it is refused, and what to set instead
}

// Error names the field and says what to set.
func (e *OptionError) Error() string {
	return fmt.Sprintf("goredisstore: %s.%s %s", e.Options, e.Field, e.Reason)
}

// Unwrap returns asynclock's ErrInvalidOption.
func (e *OptionError) Unwrap() error { return store.ErrInvalidOption }

var errNil = fmt.Errorf("%w: goredisstore: nil options", store.ErrInvalidOption)
