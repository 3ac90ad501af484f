// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
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
	sideBySide = 3
	// inParallel is how many parallel tests of a package run at once, for the same reason.
	inParallel = 16
	// repeats is how many tests of a module may fail and be repeated. If more fail, something is
	// wrong with the change or the machine, and no repetition would say what.
	repeats = 3
	// slowest is how many tests the table at the end has.
	slowest = 10
)

// testLimit bounds one package. The longest takes a minute or two on an idle machine.
const testLimit = 15 * time.Minute

// everything is every package of a module.
var everything = []string{"./..."}

// A testRun is one call of this program to test.
type testRun struct {
	cmd      command
	dir      string // for the records
	flags    []string
	packages []string
}

// test runs go test with args in each module and returns the exit code. Named packages
// are those of the first module.
func test(ctx context.Context, cmd command, dir string, modules, args []string) (int, error) {
	t := testRun{cmd: cmd, dir: dir, packages: everything}
	t.flags = []string{
		"-race", fmt.Sprintf("-p=%d", max(sideBySide, runtime.NumCPU())), fmt.Sprintf("-parallel=%d", inParallel),
		"-timeout=" + testLimit.String(),
		fmt.Sprintf("-shuffle=%d", time.Now().UnixNano()), // each package's line tells it, so that the order can be had again
	}
	flags, packages := split(args)
	if len(packages) > 0 {
		t.packages, modules = packages, modules[:1]
	}
	t.flags = append(t.flags, flags...)

	code := 0
	var records []record
	for i, module := range slices.Backward(modules) { // those below first: what is said last is of this one
		file := filepath.Join(dir, fmt.Sprintf("tests-%d.json", i))
		got, err := t.runModule(ctx, module, file)
		if err != nil {
			return got, err
		}
		code = max(code, got)
		r, err := readRecord(file)
		if err != nil {
			return 1, err
		}
		records = append(records, r)
	}
	if err := t.showSlowest(ctx, modules); err != nil {
		return 1, err
	}
	for _, r := range records { // at the very end, where nobody overlooks it
		if !r.forgive(cmd.stdout, modules[0]) {
			code = max(code, 1)
		}
	}
	fmt.Fprintln(cmd.stdout, sums(records))
	return code, nil
}

// runModule tests the packages of one module and leaves what go test said in the file.
func (t testRun) runModule(ctx context.Context, module, file string) (int, error) {
	line := []string{
		"run", gotestsum, "--jsonfile=" + file, "--format-icons=text", "--format=" + t.format(),
		"--packages=" + strings.Join(t.packages, " "),
	}
	if !slices.ContainsFunc(t.flags, func(f string) bool { return strings.HasPrefix(f, "-count") }) { // who counts wants to see each failure
		line = append(line, "--rerun-fails=1", fmt.Sprintf("--rerun-fails-max-failures=%d", repeats), "--rerun-fails-abort-on-data-race")
	}
	line = append(append(line, "--"), t.flags...)
	fmt.Fprintf(t.cmd.stderr, "testenv: go %s\n", strings.Join(line, " "))
	cmd := t.cmd
	cmd.dir = module
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
func (t testRun) showSlowest(ctx context.Context, modules []string) error {
	var all []byte
	for i := range modules {
		text, err := os.ReadFile(filepath.Join(t.dir, fmt.Sprintf("tests-%d.json", i)))
		if err != nil {
			return err
		}
		all = append(all, text...)
	}
	file := filepath.Join(t.dir, "tests.json")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(t.cmd.stdout, "\nthe %d slowest tests:\n", slowest)
	_, err := t.cmd.run(ctx, "go", "run", gotestsum, "tool", "slowest", "--threshold=1s", fmt.Sprintf("--num=%d", slowest), "--jsonfile="+file)
	return err
}
