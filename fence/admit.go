// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/store"
)

// MaxResourceLen is the longest name of a resource, in bytes of UTF-8.
const MaxResourceLen = 64

// Fences of all kinds return these errors. Test with [errors.Is].
var (
	// ErrStale: a later holder of the key has been at the resource. Nothing was written, or the
	// transaction has to be rolled back. [StaleError] has the tokens. Repeating is of no use: the
	// lease has ended.
	ErrStale = errors.New("fence: stale fencing token")

	// ErrInvalidKey: the key is empty, longer than 512 bytes or not UTF-8. It is
	// asynclock.ErrInvalidKey.
	ErrInvalidKey = store.ErrInvalidKey

	// ErrInvalidToken: there is no holder, or its token is not larger than 0. The token of a lease is 0
	// if its store has no tokens (store.Features). The error is also an ErrInvalidOption.
	ErrInvalidToken = fmt.Errorf("%w: no fencing token", store.ErrInvalidOption)

	// ErrInvalidOption: another argument makes no sense. It is asynclock.ErrInvalidOption.
	ErrInvalidOption = store.ErrInvalidOption
)

// A StaleError is [ErrStale] with the tokens.
type StaleError struct {
	Key      string
	Resource string // empty if the fence has no name for it
	Token    int64  // the one that was refused
	Newest   int64  // the largest that the fence was shown
}

func (e *StaleError) Error() string {
	at := ""
	if e.Resource != "" {
		at = " at " + strconv.Quote(e.Resource)
	}
	return fmt.Sprintf("%v: token %d of %q%s is smaller than %d", ErrStale, e.Token, e.Key, at, e.Newest)
}

// Is reports that a StaleError is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Admit is the rule of every fence: it returns a [*StaleError] if the token of h is smaller than
// newest, the largest that the fence of h's key at this resource was shown. An equal token is let in.
// Its other errors are those of [Check] and [CheckResource].
//
// Admit alone protects nothing. Its caller has to read newest, write the larger of both and write the
// data in one atomic step.
func Admit(h Holder, resource string, newest int64) error {
	if err := errors.Join(Check(h), CheckResource(resource)); err != nil {
		return err
	}
	if token := h.Token(); token < newest {
		return &StaleError{Key: h.Key(), Resource: resource, Token: token, Newest: newest}
	}
	return nil
}

// Check returns an error if h can be shown to no fence: [ErrInvalidKey] or [ErrInvalidToken].
func Check(h Holder) error {
	if h == nil {
		return fmt.Errorf("%w: no holder", ErrInvalidToken)
	}
	key := h.Key()
	if key == "" || len(key) > store.MaxKeyLen || !utf8.ValidString(key) {
		return fmt.Errorf("%w: must be UTF-8 of 1 to %d bytes", ErrInvalidKey, store.MaxKeyLen)
	}
	if h.Token() <= 0 {
		return fmt.Errorf("%w: the token of %q is %d", ErrInvalidToken, key, h.Token())
	}
	return nil
}

// CheckResource returns [ErrInvalidOption] if a resource can't have this name. It is UTF-8 of at most
// [MaxResourceLen] bytes, and may be empty.
func CheckResource(name string) error {
	if len(name) > MaxResourceLen || !utf8.ValidString(name) {
		return fmt.Errorf("%w: the name of a resource must be UTF-8 of at most %d bytes", ErrInvalidOption, MaxResourceLen)
	}
	return nil
}
