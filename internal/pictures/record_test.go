// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	events, err := watch(exec.CommandContext(t.Context(), "sh", "-c", "stty size; read -r _ < /dev/null; echo end"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	var before time.Duration
	for _, e := range events {
		if e.at < before {
			t.Errorf("got an event at %v after one at %v", e.at, before)
		}
		before = e.at
		all.WriteString(e.text)
	}
	if got, want := all.String(), fmt.Sprintf("%d %d\r\nend\r\n", rows, columns); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWatchOfAFailure(t *testing.T) {
	t.Parallel()
	var exit *exec.ExitError
	if _, err := watch(exec.CommandContext(t.Context(), "sh", "-c", "echo half; exit 3")); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v, want exit status 3", err)
	}
	if _, err := watch(exec.CommandContext(t.Context(), "/no/such/program")); err == nil {
		t.Error("got no error, want one: there is no such program")
	}
	ended, cancel := context.WithTimeout(t.Context(), 50*ms)
	defer cancel()
	if _, err := watch(exec.CommandContext(ended, "sleep", "600")); err == nil {
		t.Error("got no error of a program that was stopped")
	}
}
