// SPDX-License-Identifier: Apache-2.0

package needed

import (
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
		go func() { // ends with Variable
			defer close(got)
			got <- Variable(&f, variable)
		}()
		if value := <-got; value != c.value {
			t.Errorf("%+v: got %q", c, value)
		}
		if skipped, failed := strings.Contains(f.skipped, variable), strings.Contains(f.failed, variable); skipped != c.skipped || failed != c.failed {
			t.Errorf("%+v: got it skipped because of %q, failed because of %q", c, f.skipped, f.failed)
		}
	}
}
