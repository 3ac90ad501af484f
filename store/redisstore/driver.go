// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// NewWith makes a store that uses another client library than rueidis. The store closes the driver.
// NewWith sends nothing. Its only error is asynclock's ErrInvalidOption, also for a nil driver.
func NewWith(driver redisdriver.Driver, opts ...Option) (*Store, error) {
	if driver == nil {
		return nil, fmt.Errorf("%w: nil driver", store.ErrInvalidOption)
	}
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return newStore(driver, s), nil
}

// A connection is a driver until it is closed.
type connection struct {
	redisdriver.Driver

	closed atomic.Bool
}

// Close closes the driver. It reports whether this was the first call.
func (c *connection) Close() (first bool) {
	if c.closed.Swap(true) {
		return false
	}
	c.Driver.Close()
	return true
}

// Closed reports whether Close was called.
func (c *connection) Closed() bool { return c.closed.Load() }
