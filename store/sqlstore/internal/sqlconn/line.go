// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A row that somebody else's transaction has locked must not take the application's pool. So no call
// keeps a connection while it waits for a row, except for these moments.
const (
	// mostInLine is how long one waits in line in the server. A row that only requests like it lock is
	// free sooner.
	mostInLine = 20 * time.Millisecond
	// leastInLine is how long any other waits.
	leastInLine = time.Millisecond
	// mostTogether is how long several wait together. They skip locked rows, and wait only for one that
	// somebody is making, and for what the server itself locks for a moment.
	mostTogether = 250 * time.Millisecond
	// lineOf divides the pool: that part of its connections may stand in line at once, at least one.
	lineOf = 4
	// longestLine is how many may do so in a large pool, or one without bound.
	longestLine = 8
)

// How long requests are repeated whose rows are locked.
const (
	// rowPatience is for several, whose other answers have come already, and for renewals, of which others
	// wait for the answer. It is never more than an eighth of the remaining time.
	rowPatience = time.Second
	// longRowPatience is for any other request that is alone. It is never more than half of the remaining
	// time. A key that many want may have its row locked by one request after the other.
	longRowPatience = 10 * time.Second
)

// Pauses between the repetitions, in which no connection is kept. They double.
const (
	firstRowPause   = 10 * time.Millisecond
	longestRowPause = 160 * time.Millisecond
)

// errRowLocked: another transaction is open on the lock's row. Nothing has been done.
var errRowLocked = fmt.Errorf("%w: the row is locked by another transaction", store.ErrUnreachable)

// errRowUnanswered: there was no answer in the time for locked rows, which the caller does not know.
var errRowUnanswered = fmt.Errorf("%w: no answer in time for a row that was locked", store.ErrOutcomeUnknown)

// callOne calls a routine for one item, which waits in line for its row if there is room.
func (c *Conn) callOne(ctx context.Context, routine string, it Item, inLine time.Duration) ([]Answer, error) {
	if inLine > leastInLine && c.enterLine() {
		defer c.standing.Add(-1)
	} else {
		inLine = leastInLine
	}
	if deadline, ok := ctx.Deadline(); ok { // a call that is cut short costs its connection
		inLine = max(min(inLine, time.Until(deadline)/4), leastInLine)
	}
	it.InLine = Micros(inLine)
	return c.call(ctx, routine, []Item{it}, inLine)
}

// enterLine reports whether there is room for one more that stands in line.
func (c *Conn) enterLine() bool {
	size := c.db.Stats().MaxOpenConnections
	if c.pool != nil {
		size = int(c.pool.Stat().MaxConns())
	}
	room := min(max(size/lineOf, 1), longestLine)
	if size == 0 {
		room = longestLine
	}
	if c.standing.Add(1) <= int32(room) {
		return true
	}
	c.standing.Add(-1)
	return false
}
