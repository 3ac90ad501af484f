// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCommandExitCode(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	cmd := command{env: []string{"ANSWER=42"}, stdout: &out, stderr: io.Discard}
	code, err := cmd.run(t.Context(), "/bin/sh", "-c", "echo $ANSWER; exit 7")
	if code != 7 || err != nil || out.String() != "42\n" {
		t.Errorf("got %d, %v, %q, want 7, nil, 42", code, err, out.String())
	}
	if code, err = cmd.run(t.Context(), "/no/such/program"); code != 1 || err == nil {
		t.Errorf("got %d, %v for a missing program, want 1 and an error", code, err)
	}
}

// The shell's child holds the pipe, so run returns early only if it is gone too.
func TestStoppedCommandTakesItsChildrenAlong(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	stopShell(t, syscall.SIGTERM, time.Minute, "sleep 1000 & echo ready; wait")
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v, want no wait for the child", took)
	}
}

func TestStubbornCommandIsKilled(t *testing.T) {
	t.Parallel()
	stopShell(t, syscall.SIGINT, 50*time.Millisecond, "trap '' INT; echo ready; sleep 1000")
}

// stopShell runs a script, and stops it with the signal once it has said ready.
func stopShell(t *testing.T, sig syscall.Signal, grace time.Duration, script string) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	reader, writer := io.Pipe()
	defer writer.Close()
	go func() { // ends when the script has said its line, or writer is closed
		line := make([]byte, len("ready\n"))
		if _, err := io.ReadFull(reader, line); err == nil {
			cancel(&stopped{sig})
		}
	}()
	cmd := command{stdout: writer, stderr: io.Discard, grace: grace}
	code, err := cmd.run(ctx, "/bin/sh", "-c", script)
	if s := new(stopped); !errors.As(err, &s) || code != 128+int(sig) {
		t.Errorf("got %d, %v, want %d and the order to stop", code, err, 128+int(sig))
	}
}
