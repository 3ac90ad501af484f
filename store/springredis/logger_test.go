// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Not parallel, because slog's default is everybody's.
func TestWithoutALoggerWarningsGoToTheDefault(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	for name, tt := range map[string]struct {
		options []Option
		lines   int
	}{
		"default": {nil, 1},
		"silent":  {[]Option{WithoutLogger()}, 0},
		"another": {[]Option{WithLogger(slog.New(slog.DiscardHandler))}, 0},
	} {
		var written kit.Journal
		slog.SetDefault(written.Logger(slog.LevelDebug))
		s, err := newSettings(tt.options)
		if err != nil {
			t.Fatal(err)
		}
		log := s.log()
		log.Add(slog.LevelInfo, "good news")
		log.Add(slog.LevelWarn, "bad news")
		log.Close()
		if got := strings.Count(written.String(), "\n"); got != tt.lines {
			t.Errorf("%s: got %d lines in the default log, want %d:\n%s", name, got, tt.lines, written.String())
		}
	}
}
