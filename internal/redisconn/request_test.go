// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func TestCheckHolding(t *testing.T) {
	for name, c := range map[string]struct {
		key, owner string
		token      int64
		want       error
	}{
		"good":              {"key", "owner", 1, nil},
		"at the limits":     {strings.Repeat("x", store.MaxKeyLen), strings.Repeat("x", MaxFieldLen), 9e15, nil},
		"no token is known": {"key", "owner", 0, nil},
		"no key":            {"", "owner", 1, store.ErrInvalidKey},
		"key of no text":    {"\xff", "owner", 1, store.ErrInvalidKey},
		"long key":          {strings.Repeat("x", store.MaxKeyLen+1), "owner", 1, store.ErrInvalidKey},
		"no owner":          {"key", "", 1, store.ErrInvalidOption},
		"owner of two":      {"key", "a b", 1, store.ErrInvalidOption},
		"token below 0":     {"key", "owner", -1, store.ErrInvalidOption},
		"token too large":   {"key", "owner", 9e15 + 1, store.ErrInvalidOption},
	} {
		if got := CheckHolding(c.key, c.owner, c.token); !errors.Is(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestLeft(t *testing.T) {
	for pttl, want := range map[int64]time.Duration{
		-2: 0, -1: -time.Millisecond, 0: 0, 1500: 1500 * time.Millisecond,
		math.MaxInt64 / 1_000_000: math.MaxInt64 / time.Millisecond * time.Millisecond, math.MaxInt64: math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		if got := Left(pttl); got != want {
			t.Errorf("PTTL %d: got %v, want %v", pttl, got, want)
		}
	}
}
