// SPDX-License-Identifier: Apache-2.0

package tombstone

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestNobodyIsRememberedWhoWasNotWithdrawn(t *testing.T) {
	var gone Owners
	if gone.Has("owner") {
		t.Error("no owner was added: got one")
	}
	gone.Add("another")
	if gone.Has("owner") || !gone.Has("another") {
		t.Errorf("got %v, want the one that was added", gone.order)
	}
}

func TestOwnersAreForgottenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone Owners
		for i := range 100 {
			// Repeated, as by a client that had no reply.
			gone.Add(fmt.Sprint(i))
			gone.Add(fmt.Sprint(i))
		}
		time.Sleep(Remembered - time.Nanosecond)
		gone.Add("99") // does not make it last longer
		if !gone.Has("99") {
			t.Errorf("just before %v: got nothing, want the owner", Remembered)
		}
		if got := len(gone.order); got != 100 {
			t.Errorf("owners remembered: got %d, want 100, each once", got)
		}
		time.Sleep(time.Nanosecond)
		if gone.Has("99") || len(gone.until) != 0 || len(gone.order) != 0 {
			t.Errorf("owners remembered after %v: got %d, want none", Remembered, len(gone.order))
		}
		gone.Add("99")
		if !gone.Has("99") {
			t.Error("withdrawn again: got nothing, want the owner")
		}
	})
}
