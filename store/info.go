// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// Info describes a key.
type Info struct {
	Key       string
	Held      bool
	Holder    string        // the holder's description of itself
	Token     int64         // the holder's fencing token, as last written to the store
	Remaining time.Duration // of the holder's TTL; negative if unknown
	Waiters   int           // how many clients are queued and have not died
	Queue     []WaiterInfo  // the first few of them, in order; nil from List

	// Mine: the client that was asked is the holder, as far as it knows. The client sets it; stores
	// leave it false.
	Mine bool
}

// WaiterInfo describes one queued client.
type WaiterInfo struct {
	Holder string        // its description of itself
	Age    time.Duration // since it queued
}
