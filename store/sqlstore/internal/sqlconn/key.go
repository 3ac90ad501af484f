// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/internal/sqlfence"
	"github.com/asynclock/asynclock-go/store"
)

// CheckKey returns an error if key can't name a lock. The client of asynclock.New checks this
// before each request, but other callers may not.
func CheckKey(key string) error {
	if key == "" || len(key) > store.MaxKeyLen || !utf8.ValidString(key) {
		return fmt.Errorf("%w: must be UTF-8 of 1 to %d bytes", store.ErrInvalidKey, store.MaxKeyLen)
	}
	return nil
}

// KeyName returns the key as stored in the database, as in the tables of fences.
func KeyName(key string) string { return sqlfence.Name(key) }

// KeyOf finds the key that has a name.
func KeyOf(name string) (key string, ok bool) {
	key, ok = DecodeName(name)
	return key, ok && CheckKey(key) == nil && KeyName(key) == name
}

// DecodeName undoes KeyName.
func DecodeName(name string) (text string, ok bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(name, "%")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		c, err := strconv.ParseUint(after[:min(len(after), 2)], 16, 8)
		if err != nil || len(after) < 2 {
			return "", false
		}
		b.WriteByte(byte(c))
		name = after[2:]
	}
}
