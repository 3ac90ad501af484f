// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"log/slog"
)

// A note is a log record that waits for the shard's mutex to be free: a log
// handler is the application's code, and may take its time or call us.
type note struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// noteLocked keeps a record for unlock to write.
func (sh *shard) noteLocked(c *Client, level slog.Level, message string, attrs ...slog.Attr) {
	if c.log.Enabled(c.background, level) {
		sh.notes = append(sh.notes, note{level, message, attrs})
	}
}

// unlock frees the shard and writes what was noted under it.
func (sh *shard) unlock(c *Client) {
	notes := sh.notes
	sh.notes = nil
	sh.mu.Unlock()
	for _, n := range notes {
		c.log.LogAttrs(context.Background(), n.level, n.message, n.attrs...)
	}
}
