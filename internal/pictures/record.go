// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// The terminal in which the demo runs.
const (
	columns = 100
	rows    = 34 // so that nothing scrolls away
	kind    = "xterm-256color"
)

// patience is how long the demo may take, which usually takes ten seconds.
const patience = 2 * time.Minute

// record runs the demo in a terminal and returns what it wrote.
func record(ctx context.Context) (cast, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir, err := os.MkdirTemp("", "asynclock-pictures-")
	if err != nil {
		return cast{}, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "asynclock")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/asynclock")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return cast{}, fmt.Errorf("building asynclock: %w", err)
	}
	demo := exec.CommandContext(ctx, program, "demo")
	demo.Env = []string{"TERM=" + kind, "LANG=C.UTF-8", "TMPDIR=" + dir}
	events, err := watch(demo)
	if err != nil {
		return cast{}, fmt.Errorf("asynclock demo: %w", err)
	}
	return cast{header{Version: 2, Width: columns, Height: rows}, tidy(events)}, nil
}

// watch runs a program in a terminal and returns what it wrote, and when.
func watch(program *exec.Cmd) ([]event, error) {
	began := time.Now()
	terminal, err := pty.StartWithSize(program, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		return nil, err
	}
	defer func() { _ = terminal.Close() }() // only read from
	var events []event
	chunk := make([]byte, 64<<10)
	for {
		n, err := terminal.Read(chunk)
		if n > 0 {
			events = append(events, event{time.Since(began), string(chunk[:n])})
		}
		if err == nil {
			continue
		}
		if ended := program.Wait(); ended != nil {
			return nil, ended
		}
		if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) { // the program has ended, on Linux and elsewhere
			err = nil
		}
		return events, err
	}
}
