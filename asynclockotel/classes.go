// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import "sync"

// otherClass is that of all keys whose class is one too many.
const otherClass = "_other"

// classes bounds how many classes there are.
type classes struct {
	most int

	mu   sync.RWMutex
	seen map[string]bool
}

// bounded returns the class, or otherClass.
func (c *classes) bounded(class string) string {
	if class == "" {
		return ""
	}
	c.mu.RLock()
	known := c.seen[class]
	full := len(c.seen) >= c.most
	c.mu.RUnlock()
	switch {
	case known:
		return class
	case full:
		return otherClass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[class] && len(c.seen) >= c.most {
		return otherClass
	}
	c.seen[class] = true
	return class
}
