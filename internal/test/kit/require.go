// SPDX-License-Identifier: Apache-2.0

// Package kit has what tests of every package need: how a test asks for a server or a
// program (Require, Skip), waits for something (Eventually), reads a log (Journal), checks a
// package's log options (LogOptions) and gets certificates (NewAuthority).
//
// Where something is not there, its tests are left out, except that ASYNCLOCK_REQUIRE=1
// makes them fail. go run ./internal/test/testenv starts what it takes, and sets the variables.
package kit

import (
	"os"
	"testing"
)

// Require returns what a variable of the environment says. Without it the test is
// left out.
func Require(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		Skip(t, name+" is not set")
	}
	return value
}

// Skip ends a test that can't be made here, for the reason given.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("ASYNCLOCK_REQUIRE") == "1" {
		t.Fatal(why + ", and ASYNCLOCK_REQUIRE is: nothing may be left out")
	}
	t.Skip("left out: " + why + "; go run ./internal/test/testenv starts what it takes")
}
