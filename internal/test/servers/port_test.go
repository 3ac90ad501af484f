// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestFreePortsDiffer(t *testing.T) {
	t.Parallel()
	all, err := FreePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	if got := len(slices.Compact(all)); got != 50 {
		t.Errorf("got %d different ports, want 50", got)
	}
	if all[0] < firstPort || all[len(all)-1] >= firstPort+ports {
		t.Errorf("got %d to %d, want %d to %d", all[0], all[len(all)-1], firstPort, firstPort+ports-1)
	}
}

func TestAnotherPortIsTried(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		errs   []error // of one try after the other
		tries  int
		wanted error
	}{
		{"when somebody has it", []error{fmt.Errorf("bind: %w", errTaken), nil}, 2, nil},
		{"for no other reason", []error{broken, nil}, 1, broken},
		{"not for ever", slices.Repeat([]error{errTaken}, 100), 20, errTaken},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var tried []int
			n, err := onFreePorts(1, func(ports []int) (int, error) {
				tried = append(tried, ports[0])
				return len(tried), c.errs[len(tried)-1]
			})
			if n != c.tries || !errors.Is(err, c.wanted) {
				t.Errorf("got %d, %v, want %d tries and %v", n, err, c.tries, c.wanted)
			}
			if slices.Sort(tried); len(slices.Compact(tried)) != c.tries {
				t.Errorf("tried %v, want a new port each time", tried)
			}
		})
	}
}
