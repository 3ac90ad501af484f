// SPDX-License-Identifier: Apache-2.0

// Package needed is for tests that need more than Go: servers, and programs. What is
// not there leaves its tests out, unless ASYNCLOCK_REQUIRE=1 forbids that. go run
// ./internal/testenv starts what it takes, and sets the variables.
package needed

import (
	"os"
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
