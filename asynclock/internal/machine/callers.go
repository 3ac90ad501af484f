// SPDX-License-Identifier: Apache-2.0

package machine

// callers counts the futures of each context. Usually there is one context.
type callers struct {
	first   <-chan struct{}
	more    map[<-chan struct{}]int32
	futures int32 // of the first
	n       int32 // how many contexts have any
}

func (c *callers) has(bound <-chan struct{}) bool {
	return bound == c.first && c.futures > 0 || c.more[bound] > 0
}

// count adds n futures, 1 or -1.
func (c *callers) count(bound <-chan struct{}, n int32) {
	had := c.has(bound)
	switch {
	case bound == c.first, !had && c.futures == 0:
		c.first = bound
		c.futures += n
	case had && c.more[bound]+n == 0:
		delete(c.more, bound)
	default:
		if c.more == nil {
			c.more = make(map[<-chan struct{}]int32)
		}
		c.more[bound] += n
	}
	if has := c.has(bound); has != had {
		c.n += n
	}
}
