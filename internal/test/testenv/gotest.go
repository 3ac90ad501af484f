// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// gotestsum runs go test and reports: a line for each package, failures once more at the
// end, and the sums.
const gotestsum = "gotest.tools/gotestsum@v1.13.0"

const (
	// sideBySide is how many packages are tested at once, or one for each core where
	// there are more. Their tests mostly wait: for a TTL, a server, a process.
	sideBySide = 4
	// inParallel is how many parallel tests of a package run at once, for the same reason.
	inParallel = 12
	// repeats is how many tests of a run may fail and be repeated. If more fail, something is
	// wrong with the change or the machine, and no repetition would say what.
	repeats = 3
	// slowest is how many tests the table at the end has.
	slowest = 10
)

// raceExit ends a program of the race detector at once. By default it stays for a second, in case that another thread
// still reports: that would be for each package, and for each program that a test starts.
const raceExit = "GORACE=atexit_sleep_ms=10"

// testLimit bounds one package. The longest takes a minute or two on an idle machine.
const testLimit = 15 * time.Minute

// A testRun is one call of this program to test.
type testRun struct {
	cmd      command
	root     string   // of the repository
	file     string   // for what go test says
	flags    []string // of go test
	packages []string
}

// test runs go test with args and returns the exit code. Without packages among these, it
// tests all of every module.
func test(ctx context.Context, cmd command, s *setting, args []string) (int, error) {
	flags, packages := s.split(args)
	t := testRun{cmd: cmd, root: s.modules[0], file: filepath.Join(s.dir, "tests.json"), packages: packages}
	t.flags = append([]string{
		"-race", fmt.Sprintf("-p=%d", max(sideBySide, runtime.NumCPU())), fmt.Sprintf("-parallel=%d", inParallel),
		"-timeout=" + testLimit.String(), "-vet=off", // the linters do that
		fmt.Sprintf("-shuffle=%d", time.Now().UnixNano()), // each package's line tells it, so that the order can be had again
	}, flags...)
	code, err := t.run(ctx)
	if err != nil {
		return code, err
	}
	r, err := readRecord(t.file)
	if err != nil {
		return 1, err
	}
	if err := t.showSlowest(ctx); err != nil {
		return 1, err
	}
	if !r.forgive(cmd.stdout, t.root) { // at the very end, where nobody overlooks it
		code = max(code, 1)
	}
	fmt.Fprintln(cmd.stdout, r.sums())
	return code, nil
}

// run tests the packages, and leaves what go test said in the file.
func (t testRun) run(ctx context.Context) (int, error) {
	line := []string{
		"run", gotestsum, "--jsonfile=" + t.file, "--format-icons=text", "--format=" + t.format(),
		"--packages=" + strings.Join(t.packages, " "),
	}
	if !slices.ContainsFunc(t.flags, func(f string) bool { return strings.HasPrefix(f, "-count") }) { // -count is for seeing each failure
		line = append(line, "--rerun-fails=1", fmt.Sprintf("--rerun-fails-max-failures=%d", repeats), "--rerun-fails-abort-on-data-race")
	}
	line = append(append(line, "--"), t.flags...)
	fmt.Fprintf(t.cmd.stderr, "testenv: go %s\n", strings.Join(line, " "))
	cmd := t.cmd
	cmd.dir, cmd.env = t.root, append(slices.Clone(cmd.env), raceExit)
	return cmd.run(ctx, "go", line...)
}

func (t testRun) format() string {
	if slices.Contains(t.flags, "-v") {
		return "standard-verbose"
	}
	return "pkgname"
}

// showSlowest prints a table of the tests that took longest, for whoever has to make the
// run shorter.
func (t testRun) showSlowest(ctx context.Context) error {
	fmt.Fprintf(t.cmd.stdout, "\nthe %d slowest tests:\n", slowest)
	_, err := t.cmd.run(ctx, "go", "run", gotestsum, "tool", "slowest", "--threshold=1s", fmt.Sprintf("--num=%d", slowest), "--jsonfile="+t.file)
	return err
}
