// SPDX-License-Identifier: Apache-2.0

package asynclog

import (
	"fmt"
	"log/slog"

	"github.com/asynclock/asynclock-go/store"
)

// A Choice is where options have a log write: to [Default], until one of its methods says another place.
type Choice struct{ open func() *Log }

// Logger chooses the logger. It is what an option WithLogger does.
func (c *Choice) Logger(logger *slog.Logger) error {
	if logger == nil {
		return fmt.Errorf("%w: nil logger", store.ErrInvalidOption)
	}
	c.open = func() *Log { return New(logger) }
	return nil
}

// Nowhere chooses no log. It is what an option WithoutLogger does.
func (c *Choice) Nowhere() error {
	c.open = func() *Log { return nil }
	return nil
}

// Open makes the log that was chosen.
func (c *Choice) Open() *Log {
	if c.open == nil {
		return Default()
	}
	return c.open()
}
