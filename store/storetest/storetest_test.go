// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

var faultName = flag.String("storetest.fault", "", "the fault of the store that TestStoreWithFault checks")

// TestSuiteCatchesFaults breaks one rule at a time and sees the suite fail in
// the case that is about it. A failing suite fails its process, so each fault
// has one of its own.
func TestSuiteCatchesFaults(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range allFaults() {
		t.Run(f.breaks, func(t *testing.T) {
			t.Parallel()
			output, err := exec.CommandContext(t.Context(), self,
				"-test.run=^TestStoreWithFault$/^store$/^"+regexp.QuoteMeta(strings.ReplaceAll(f.caught, " ", "_"))+"$", "-test.timeout=60s", "-storetest.fault="+f.breaks).CombinedOutput()
			red := "--- FAIL: TestStoreWithFault/store/" + strings.ReplaceAll(f.caught, " ", "_") + " "
			if err == nil || !strings.Contains(string(output), red) {
				t.Errorf("a store with this fault: case %q passed, want it to fail\n%s", f.caught, output)
			}
		})
	}
}

// misuses are ways to call the suite that have to be told, and what it says.
var misuses = map[string]struct {
	run  func(*testing.T)
	says string
}{
	"open is nil":          {func(t *testing.T) { storetest.Run(t, nil) }, "storetest: open is nil"},
	"open returns nothing": {func(t *testing.T) { storetest.Run(t, func(*testing.T) store.Store { return nil }) }, "storetest: open returned no store"},
	"an option is nil":     {func(t *testing.T) { storetest.Run(t, func(*testing.T) store.Store { return nil }, nil) }, "storetest: an option is nil"},
	"a zero store opens":   {func(t *testing.T) { storetest.Zero(t, newBrokenStore(fault{})) }, "Open of a zero store: got <nil>"},
}

func TestMisuseIsTold(t *testing.T) {
	if m, is := misuses[*faultName]; is {
		m.run(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range misuses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := exec.CommandContext(t.Context(), self,
				"-test.run=^TestMisuseIsTold$", "-test.timeout=60s", "-storetest.fault="+name).CombinedOutput()
			if err == nil || !strings.Contains(string(output), m.says) || strings.Contains(string(output), "panic") {
				t.Errorf("got %v and %s, want it to fail with %q", err, output, m.says)
			}
		})
	}
}

func allFaults() []fault {
	return slices.Concat(faults, shareFaults, limitFaults, noteFaults, observeFaults)
}

// TestStoreWithFault is the suite over a store with the fault of the flag.
func TestStoreWithFault(t *testing.T) {
	for _, f := range allFaults() {
		if f.breaks == *faultName {
			storetest.Run(t, func(*testing.T) store.Store { return newBrokenStore(f) }, storetest.InBubble())
			return
		}
	}
	if *faultName != "" {
		t.Fatalf("no fault is named %q", *faultName)
	}
	t.Skip("only for the processes that TestSuiteCatchesFaults starts, with a fault each")
}

// TestSuiteOverStoreWithoutMessages shows that polling is enough if the store
// says so and the suite is told.
func TestSuiteOverStoreWithoutMessages(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return newBrokenStore(silent) },
		storetest.InBubble(), storetest.WithoutMessages())
}

// TestSuiteOverStoreWithoutFault shows that it is the faults that are caught.
func TestSuiteOverStoreWithoutFault(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return newBrokenStore(fault{}) }, storetest.InBubble())
}
