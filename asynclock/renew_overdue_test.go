// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"testing"
)

func TestOverdueRenewals(t *testing.T) {
	t.Parallel()
	var o overdueRenewals
	for i := range mostOverdue {
		if !o.enter(1) {
			t.Fatalf("call %d: got no room", i)
		}
	}
	if o.enter(1) {
		t.Errorf("call %d: got room, want none", mostOverdue)
	}
	if !o.enter(2) {
		t.Error("in another lane: got no room")
	}
	o.leave(1)
	if !o.enter(1) {
		t.Error("after one has ended: got no room")
	}
	for range mostOverdue {
		o.leave(1)
	}
	o.leave(2)
	if len(o.late) != 0 {
		t.Errorf("in the end: got %v, want nothing", o.late)
	}
}
