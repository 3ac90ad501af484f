// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Limits of what a client sends. A store may count on them.
const (
	// DefaultTTL is what a client requests unless its user chooses another.
	DefaultTTL = 15 * time.Second
	// MinTTL and MaxTTL bound each TTL.
	MinTTL = 100 * time.Millisecond
	MaxTTL = 24 * time.Hour
	// MaxKeyLen is the longest key, in bytes of UTF-8.
	MaxKeyLen = 512
	// MaxDescriptionLen is the longest description of a holder, in bytes.
	MaxDescriptionLen = 128
	// MaxNoteLen is the longest note, in bytes.
	MaxNoteLen = 1024
	// MaxNoteTTL is the longest TTL of a note.
	MaxNoteTTL = 10 * 365 * 24 * time.Hour
)
