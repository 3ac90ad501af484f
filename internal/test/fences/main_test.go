// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// TestMain runs the tests, or makes this process the sleeper of one.
func TestMain(m *testing.M) {
	if os.Getenv(sleeperVariable) == "" {
		kit.InParallel(16)
		goleak.VerifyTestMain(m, leftover...)
		return
	}
	if err := sleep(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sleeper:", err)
		os.Exit(1)
	}
}
