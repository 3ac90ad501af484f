// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// test runs go test with args in each module, reports to stdout, and returns
// the exit code. Named packages are those of the first module.
func test(ctx context.Context, cmd command, dirs, args []string) (int, error) {
	var packages []string
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, ".") }) {
		dirs = dirs[:1]
	} else {
		packages = []string{"./..."}
	}
	// Packages one after the other, since they share the servers: one may count
	// their commands while another flushes them. In a new order each time, which
	// is said so that it can be had again.
	shuffle := fmt.Sprintf("-shuffle=%d", time.Now().UnixNano())
	// Ten minutes may be too few for a package while the machine is busy.
	line := slices.Concat([]string{"test", "-json", "-race", "-p=1", "-timeout=25m", shuffle}, args, packages)
	fmt.Fprintf(cmd.stderr, "testenv: go %s\n", strings.Join(line, " "))

	r := newReport(cmd.stdout, slices.Contains(args, "-v"))
	code := 0
	for _, dir := range dirs {
		cmd.dir = dir
		got, err := r.runGo(ctx, cmd, line)
		if err != nil {
			return got, err
		}
		code = max(code, got)
	}
	if r.close() && code == 0 {
		return 0, nil
	}
	return max(code, 1), nil
}

// runGo feeds the report with what one go test prints.
func (r *report) runGo(ctx context.Context, cmd command, line []string) (int, error) {
	reader, writer := io.Pipe()
	cmd.stdout = writer
	read := make(chan struct{})
	go func() { // ends when writer is closed, below
		defer close(read)
		r.read(reader)
	}()
	code, err := cmd.run(ctx, "go", line...)
	writer.Close()
	<-read
	if err != nil {
		return code, fmt.Errorf("go test: %w", err)
	}
	return code, nil
}
