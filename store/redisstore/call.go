// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A call is one run of a script: its Redis keys and arguments. They are collected in one
// buffer and become strings all at once. Separate strings would be most of the allocations of
// an uncontended lock.
type call struct {
	script *redisconn.Script
	buffer []byte
	ends   []int // of the parts, in buffer
	keys   int   // how many of the parts are keys
	parts  []string

	withPrimer bool // a primer goes ahead of it, if it is made by itself
}

var calls = sync.Pool{New: func() any { return new([]call) }}

// borrowCalls returns n empty calls; give them back when their results are read.
func borrowCalls(n int) *[]call {
	borrowed := calls.Get().(*[]call)
	if cap(*borrowed) < n {
		*borrowed = make([]call, n)
	}
	*borrowed = (*borrowed)[:n]
	return borrowed
}

// maxPooled is the largest number of calls worth keeping: those of a usual pipeline.
const maxPooled = redisconn.MaxPipeline

func returnCalls(borrowed *[]call) {
	if cap(*borrowed) > maxPooled {
		return
	}
	for i := range *borrowed {
		(*borrowed)[i].reset()
	}
	calls.Put(borrowed)
}

func (c *call) reset() {
	clear(c.parts) // owners in it are secrets
	clear(c.buffer)
	*c = call{buffer: c.buffer[:0], ends: c.ends[:0], parts: c.parts[:0]}
}

// lockKeys adds the Redis keys of a lock, one of each kind. All keys come before
// the first argument.
func (c *call) lockKeys(prefix, key, kinds string) {
	first := len(c.buffer)
	c.buffer = appendKey(c.buffer, prefix, bucketOf(key), key, kinds[0])
	c.end()
	size := len(c.buffer) - first
	for i := 1; i < len(kinds); i++ {
		c.buffer = append(c.buffer, c.buffer[first:first+size]...)
		c.buffer[len(c.buffer)-1] = kinds[i]
		c.end()
	}
	c.keys += len(kinds)
}

// epochKey adds the Redis key of the epoch of a lock's bucket.
func (c *call) epochKey(prefix, key string) {
	c.buffer = appendEpoch(c.buffer, prefix, bucketOf(key))
	c.end()
	c.keys++
}

func (c *call) text(s string) {
	c.buffer = append(c.buffer, s...)
	c.end()
}

func (c *call) number(n int64) {
	c.buffer = strconv.AppendInt(c.buffer, n, 10)
	c.end()
}

func (c *call) flag(set bool) {
	if set {
		c.text("1")
	} else {
		c.text("0")
	}
}

// millis adds a duration, rounded up: a TTL must not be shorter than what the
// client counts on.
func (c *call) millis(d time.Duration) { c.number(millis(d)) }

// A guard is what protects the order of tokens and exclusion when clocks or data go back.
type guard struct {
	counterTTL time.Duration
	grace      time.Duration // the least; 0: none
}

// guard adds the last arguments of each script that may write a counter.
func (c *call) guard(g guard) {
	c.millis(g.counterTTL)
	c.millis(g.grace)
}

func millis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func (c *call) end() { c.ends = append(c.ends, len(c.buffer)) }

// words makes the parts, and returns the Redis keys and the arguments.
func (c *call) words() (keys, args []string) {
	all, start := string(c.buffer), 0
	c.parts = c.parts[:0]
	for _, end := range c.ends {
		c.parts = append(c.parts, all[start:end])
		start = end
	}
	return c.parts[:c.keys], c.parts[c.keys:]
}
