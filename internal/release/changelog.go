// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]\n"

// heading gives what is not released its version, and leaves room for what comes.
func heading(changelog, version string, now time.Time) error {
	text, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(text), unreleased)
	if next, _, _ := strings.Cut(after, "\n## "); !found || strings.TrimSpace(next) == "" {
		return errors.New("the changelog says of nothing that it is not released yet")
	}
	after = unreleased + "\n## [" + strings.TrimPrefix(version, "v") + "] - " + now.UTC().Format(time.DateOnly) + "\n" + after
	return os.WriteFile(changelog, []byte(before+after), 0o644) //nolint:gosec // as git has it
}
