// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/asynclock"
)

// otherClass is that of all keys whose class is one too many, or is no class.
const otherClass = "_other"

// classes are those that have been seen.
type classes struct {
	mu   sync.RWMutex
	seen map[string]bool
}

// bounded returns the class if it is one of the first so many, or otherClass.
func (c *classes) bounded(class string, most int) string {
	if class == "" {
		return ""
	}
	c.mu.RLock()
	known, full := c.seen[class], len(c.seen) >= most
	c.mu.RUnlock()
	switch {
	case known:
		return class
	case full, !isClass(class):
		return otherClass
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[class] && len(c.seen) >= most {
		return otherClass
	}
	if c.seen == nil {
		c.seen = make(map[string]bool)
	}
	c.seen[class] = true
	return class
}

// isClass reports whether asynclock.WithClass would take it. Exporters may refuse all metrics because of one that is not UTF-8.
func isClass(class string) bool {
	return len(class) <= asynclock.MaxClassLen && utf8.ValidString(class) &&
		!strings.ContainsFunc(class, func(r rune) bool { return !unicode.IsPrint(r) })
}
