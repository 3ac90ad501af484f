// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Info describes a key.
type Info struct {
	Key    string
	Held   bool
	Holder string // the holder's description of itself
	Token  int64  // the holder's fencing token, as last written to the store
	// Remaining is the rest of the holder's TTL. It is negative if the store knows of no end: somebody else has taken
	// the key without a TTL, or the store's server does not count TTLs.
	Remaining time.Duration
	Waiters   int // how many clients are queued and have not died

	Mode  Mode
	Used  int // Permits: how many are out
	Limit int // Permits: how many there are: StoredLimit, or otherwise the smallest number that a holder believes in
	// StoredLimit is what [LimitSession] has stored for the key, whoever holds it; 0: nothing.
	StoredLimit int

	// Holders are the first few of those who hold the key together; nil from List. If there are several,
	// Holder says how many, Token is the largest of theirs, and Remaining is the longest. Of permits Token may be that
	// of a later grant, whose holder has left.
	Holders []HolderInfo

	Queue []WaiterInfo // the first few of them, in order; nil from List

	// Mine: the client that was asked is the holder, or one of several, as far as it knows. The client sets
	// it; stores leave it false.
	Mine bool
}

// HolderInfo describes one of several holders of a key.
type HolderInfo struct {
	Holder    string // its description of itself, also if it holds back what it had
	Token     int64
	Weight    int // of Permits
	Remaining time.Duration
}

// WaiterInfo describes one queued client.
type WaiterInfo struct {
	Holder string        // its description of itself
	Age    time.Duration // since it queued
}
