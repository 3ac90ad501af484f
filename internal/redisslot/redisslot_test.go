// SPDX-License-Identifier: Apache-2.0

package redisslot

import (
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// The examples of the Cluster specification and of its reference code.
func TestSlots(t *testing.T) {
	t.Parallel()
	if got := crc16("123456789"); got != 0x31c3 {
		t.Errorf("crc16: got %#x, want 0x31c3", got)
	}
	for redisKey, same := range map[string]string{
		"{user1000}.following": "user1000", "foo{{bar}}zap": "{bar", "foo{bar}{zap}": "bar", "a{b": "a{b", "a}b{c}": "c",
	} {
		if got, want := Of(redisKey), int(crc16(same)%count); got != want {
			t.Errorf("slot of %q: got %d, want that of %q, %d", redisKey, got, same, want)
		}
	}
	if got, want := Of("foo{}{bar}"), int(crc16("foo{}{bar}")%count); got != want {
		t.Errorf("slot of what begins with empty braces: got %d, want that of the whole, %d", got, want)
	}
}

// The server computes the same slots.
func TestSlotsAreTheServers(t *testing.T) {
	t.Parallel()
	sv := redistest.OnServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	for _, redisKey := range []string{"a", "shop:order:42", "{a}b", "a{b}c", "a{}b", "a}b{c", "{{}}", "größe", "x{", "}x"} {
		if got, want := int64(Of(redisKey)), sv.Number(t, "CLUSTER", "KEYSLOT", redisKey); got != want {
			t.Errorf("slot of %q: got %d, want %d", redisKey, got, want)
		}
	}
}
