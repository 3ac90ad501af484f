// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"
)

// A fakeTest notes how it is ended.
type fakeTest struct {
	testing.TB

	skipped, failed string
}

func (f *fakeTest) Helper() {}

func (f *fakeTest) Skip(args ...any) {
	f.skipped = args[0].(string)
	runtime.Goexit()
}

func (f *fakeTest) Fatal(args ...any) {
	f.failed = args[0].(string)
	runtime.Goexit()
}

func TestWhatIsNotThereLeavesItsTestsOut(t *testing.T) {
	const variable = "ASYNCLOCK_OF_NO_SERVER"
	for _, c := range []struct {
		value, required string
		skipped, failed bool
	}{
		{value: "here"}, {value: "here", required: "1"}, {skipped: true}, {required: "1", failed: true},
	} {
		t.Setenv(variable, c.value)
		t.Setenv("ASYNCLOCK_REQUIRE", c.required)
		var f fakeTest
		got := make(chan string, 1)
		go func() { // ends with Require
			defer close(got)
			got <- Require(&f, variable)
		}()
		if value := <-got; value != c.value {
			t.Errorf("%+v: got %q", c, value)
		}
		if skipped, failed := strings.Contains(f.skipped, variable), strings.Contains(f.failed, variable); skipped != c.skipped || failed != c.failed {
			t.Errorf("%+v: got it skipped because of %q, failed because of %q", c, f.skipped, f.failed)
		}
	}
}

func TestOnlyOneAsksForTheNight(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "": false, "0": false} {
		t.Setenv("ASYNCLOCK_NIGHTLY", value)
		if got := Nightly(); got != want {
			t.Errorf("ASYNCLOCK_NIGHTLY=%s: got %v, want %v", value, got, want)
		}
	}
}

// A person's own -parallel stays.
func TestInParallel(t *testing.T) {
	all, args := flag.CommandLine, os.Args
	t.Cleanup(func() { flag.CommandLine, os.Args = all, args })
	for said, want := range map[string]int{"-v": 31, "-test.parallel=7": 7} {
		flag.CommandLine, os.Args = flag.NewFlagSet("a program of tests", flag.PanicOnError), []string{"program", said}
		flag.Bool("v", false, "")
		got := flag.Int("test.parallel", 2, "")
		InParallel(31)
		if *got != want {
			t.Errorf("%s: got %d in parallel, want %d", said, *got, want)
		}
	}
}
