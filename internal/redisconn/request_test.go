// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
)

func TestCheckHolding(t *testing.T) {
	for name, c := range map[string]struct {
		key, owner string
		token      int64
		want       error
	}{
		"good":              {"key", "owner", 1, nil},
		"at the limits":     {strings.Repeat("x", asynclock.MaxKeyLen), strings.Repeat("x", MaxFieldLen), 9e15, nil},
		"no token is known": {"key", "owner", 0, nil},
		"no key":            {"", "owner", 1, asynclock.ErrBadKey},
		"key of no text":    {"\xff", "owner", 1, asynclock.ErrBadKey},
		"long key":          {strings.Repeat("x", asynclock.MaxKeyLen+1), "owner", 1, asynclock.ErrBadKey},
		"no owner":          {"key", "", 1, asynclock.ErrBadOption},
		"owner of two":      {"key", "a b", 1, asynclock.ErrBadOption},
		"token below 0":     {"key", "owner", -1, asynclock.ErrBadOption},
		"token too large":   {"key", "owner", 9e15 + 1, asynclock.ErrBadOption},
	} {
		if got := CheckHolding(c.key, c.owner, c.token); !errors.Is(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
