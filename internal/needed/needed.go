// SPDX-License-Identifier: Apache-2.0

// Package needed is for tests that need more than Go: servers, and programs. What is
// not there leaves its tests out, unless ASYNCLOCK_REQUIRE=1 forbids that. go run
// ./internal/testenv starts what it takes, and sets the variables.
package needed

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Variable returns what a variable of the environment says. Without it the test is
// left out.
func Variable(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		LeaveOut(t, name+" is not set")
	}
	return value
}

// LeaveOut ends a test that can't be made here, for the reason given.
func LeaveOut(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("ASYNCLOCK_REQUIRE") == "1" {
		t.Fatal(why + ", and ASYNCLOCK_REQUIRE is: nothing may be left out")
	}
	t.Skip("left out: " + why + "; go run ./internal/testenv starts what it takes")
}

// Nightly reports whether ASYNCLOCK_NIGHTLY=1 asks for the tests that take too long for
// every day: more releases of what there is already a newest and an oldest of. A test
// has them in its table or not, and skips none.
func Nightly() bool { return os.Getenv("ASYNCLOCK_NIGHTLY") == "1" }

// InParallel has n parallel tests run at once, unless -parallel says how many, which is
// by default one for each processor: too few where tests wait most of the time. It is
// for TestMain.
func InParallel(n int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
