// SPDX-License-Identifier: Apache-2.0

package demo

// The conductor sends orders to a worker process over the worker's stdin, and receives reports over
// the worker's stdout. Both are JSON, one per line.

// An order sets a worker's next activity. It ends the present one.
type order struct {
	Do string `json:"do"`
}

// The orders.
const (
	doRace  = "race"  // raise the counter over and over, without a lock
	doGuard = "guard" // raise the counter over and over, each time under the lock
	doHold  = "hold"  // take the lock and keep it
	doWrite = "write" // while holding: write to the ledger
	doRest  = "rest"  // do nothing, hold nothing
)

// A report says what a worker has just done.
type report struct {
	Did     string `json:"did"`
	Token   int64  `json:"token,omitempty"`   // of the lease, if it has one
	Updates int64  `json:"updates,omitempty"` // written to the counter so far, by this worker
	Text    string `json:"text,omitempty"`    // why, for didRefuse and didLose
}

// The reports.
const (
	didUpdate = "update" // raised the counter; if the lock was held, it is not held any more
	didWait   = "wait"   // requested the lock
	didTake   = "take"   // got the lock
	didWrite  = "write"  // the ledger took the write
	didRefuse = "refuse" // the ledger refused the write
	didLose   = "lose"   // the lease ended, and the worker did not end it
	didRest   = "rest"   // carries out doRest
)
