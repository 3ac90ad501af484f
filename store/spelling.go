// SPDX-License-Identifier: Apache-2.0

package store

// A SpellingSession is a [Session] of a store in which several keys may be one lock. A session without it
// tells all keys from each other.
type SpellingSession interface {
	Session

	// Spell returns the key that stands for all that are one lock with this one. It is the same for all of them, and for
	// itself. It sends nothing. The client calls it once for each key of a caller, and uses what it returns.
	Spell(key string) string
}
