// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"fmt"
	"unicode/utf8"
)

var errNilContext = fmt.Errorf("%w: nil context", ErrInvalidOption)

// checkKey reports whether key can name a lock in every store.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: empty", ErrInvalidKey)
	case len(key) > MaxKeyLen:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrInvalidKey, len(key), MaxKeyLen)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: not UTF-8", ErrInvalidKey)
	}
	return nil
}
