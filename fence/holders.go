// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"fmt"
	"slices"
	"strings"
)

// Holders is who wants to write under several keys: the keys that it holds, each once, and the fencing token of each. A
// lease of several keys (asynclock.MultiLease) is one as it stands. [Stamps] are one that came over a wire.
type Holders interface {
	Keys() []string
	Token(key string) int64
}

// Stamps are a [Holders] that travels without its lease. As JSON it is an array. Its zero value is refused everywhere.
type Stamps []Stamp

// NewStamps returns a Stamp for each key of h, sorted by the bytes of the keys. All fences of several keys are shown tokens in this
// order. So no two callers wait for each other, in whatever order they list their keys.
//
// Errors: those of [Check] for any key, [ErrInvalidToken] if there is no key, and [ErrInvalidOption] if a key is there twice.
func NewStamps(h Holders) (Stamps, error) {
	if h == nil {
		return nil, errNoHolders
	}
	keys := h.Keys()
	if len(keys) == 0 {
		return nil, errNoHolders
	}
	stamps := make(Stamps, len(keys))
	for i, key := range keys {
		s, err := NewStamp(key, h.Token(key))
		if err != nil {
			return nil, err
		}
		stamps[i] = s
	}
	slices.SortFunc(stamps, func(a, b Stamp) int { return strings.Compare(a.key, b.key) })
	for i, s := range stamps[1:] {
		if s.key == stamps[i].key {
			return nil, fmt.Errorf("%w: %q is there twice", ErrInvalidOption, s.key)
		}
	}
	return stamps, nil
}

var errNoHolders = fmt.Errorf("%w: no key is held", ErrInvalidToken)

// Keys returns the keys.
func (s Stamps) Keys() []string {
	keys := make([]string, len(s))
	for i, stamp := range s {
		keys[i] = stamp.key
	}
	return keys
}

// Token returns the token of a key; 0 if the key is not one of [Stamps.Keys].
func (s Stamps) Token(key string) int64 {
	for _, stamp := range s {
		if stamp.key == key {
			return stamp.token
		}
	}
	return 0
}
