// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"log/slog"
	"sync"
)

// A Journal is a log that can be read while it is written, from anywhere. The zero
// Journal is empty.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Logger writes records of that level and above to the journal, each on a line of its
// own, as a [slog.TextHandler] does.
func (j *Journal) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: level}))
}

// Write adds to the text.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is what has been written until now.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
