// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]\n"

// news returns what the changelog says of what is not released.
func news(changelog string) (string, error) {
	text, err := os.ReadFile(changelog)
	_, after, _ := strings.Cut(string(text), unreleased)
	next, _, _ := strings.Cut(after, "\n## ")
	return strings.TrimSpace(next), err
}

// heading gives what is not released its version, and leaves room for what comes.
func heading(changelog, version string, now time.Time) error {
	text, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(text), unreleased)
	if !found {
		return errors.New("the changelog has no place for what is not released")
	}
	after = unreleased + "\n## [" + strings.TrimPrefix(version, "v") + "] - " + now.UTC().Format(time.DateOnly) + "\n" + after
	return os.WriteFile(changelog, []byte(before+after), 0o644) //nolint:gosec // as git has it
}
