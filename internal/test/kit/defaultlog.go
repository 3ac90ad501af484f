// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"log/slog"
	"strings"
	"testing"
)

// DefaultLog has slog.Default() write to a journal until the test ends. The default is
// everybody's, so the test must not be parallel.
func DefaultLog(t testing.TB) *Journal {
	t.Helper()
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	written := new(Journal)
	slog.SetDefault(written.Logger(slog.LevelDebug))
	return written
}

// LogOptions checks what the options of these names mean: warnings go to slog.Default(), and
// nothing else does, unless an option chooses another logger or none. The function warn has a log
// of the options write one warning, as Warn does. The test must not be parallel.
func LogOptions[O any](t *testing.T, withLogger func(*slog.Logger) O, withoutLogger func() O, warn func(t *testing.T, options []O) error) {
	t.Helper()
	for name, tt := range map[string]struct {
		options []O
		lines   int
	}{
		"default": {nil, 1},
		"silent":  {[]O{withoutLogger()}, 0},
		"another": {[]O{withLogger(slog.New(slog.DiscardHandler))}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			written := DefaultLog(t)
			if err := warn(t, tt.options); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(written.String(), "\n"); got != tt.lines {
				t.Errorf("got %d lines in the default log, want %d:\n%s", got, tt.lines, written.String())
			}
		})
	}
}

// Warn writes one warning to a log, after what is no warning, and closes it. The log is an
// *asynclog.Log, which this package does not import, because asynclog's tests may import this one.
func Warn(log interface {
	Add(level slog.Level, message string, attrs ...slog.Attr)
	Close() bool
},
) {
	log.Add(slog.LevelInfo, "good news")
	log.Add(slog.LevelWarn, "bad news")
	log.Close()
}
