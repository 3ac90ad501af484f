// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"log/slog"
)

// A note is a log record on its way. A log handler is the application's code:
// it may block or call us, and so is never called under a mutex, nor on a
// goroutine that leases depend on.
type note struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

func (c *Client) note(level slog.Level, message string, attrs ...slog.Attr) {
	if c.log != nil {
		c.notes.Add(0, note{level, message, attrs})
	}
}

// writeNotes writes a batch of records, in order.
func (c *Client) writeNotes(_ int, notes []note) {
	for _, n := range notes {
		c.log.LogAttrs(context.Background(), n.level, n.message, n.attrs...)
	}
}
