// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strconv"
	"testing"
)

// TestGuardOfNothing: a guard that was told nothing, or nonsense, kills nobody. Of 0
// and 1 the kernel would make this group and everybody.
func TestGuardOfNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "0\n", "1\n", "-1\n", "-42\n", "x\n", "42 43\n", "42\n43\n", "99999999999999999999\n"} {
		if leader, err := groupLeader(text); err == nil {
			t.Errorf("%q: got process %d, want an error", text, leader.Pid)
		}
	}
	if leader, err := groupLeader(strconv.Itoa(os.Getpid()) + "\n"); err != nil || leader.Pid != os.Getpid() {
		t.Errorf("got %v, %v, want this process", leader, err)
	}
}
