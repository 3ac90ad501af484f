// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"testing"
	"unsafe"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// A held lease without options needs these bytes. The allocator rounds a holding with its lease up to 320 bytes, and a key's state
// to 208.
func TestAHeldLeaseIsSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		got, most uintptr
	}{
		{"a holding", unsafe.Sizeof(machine.Holding{}), 168},
		{"a lease", unsafe.Sizeof(leaseCore{}), 144},
		{"a holding with its lease", unsafe.Sizeof(holdingAndLease{}), 312},
		{"a key's state", unsafe.Sizeof(keyState{}), 208},
	} {
		if c.got > c.most && unsafe.Sizeof(uintptr(0)) == 8 {
			t.Errorf("%s has %d bytes, want at most %d", c.name, c.got, c.most)
		}
	}
}
