// SPDX-License-Identifier: Apache-2.0

package demo

// The conductor talks to a worker process over the worker's stdin, one order a
// line, and hears from it over its stdout, one report a line, in JSON.

// An order tells a worker what to do next. It ends what the worker is doing.
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
	didUpdate = "update" // raised the counter; if the lock was held it is not any more
	didWait   = "wait"   // asked for the lock
	didTake   = "take"   // got the lock
	didWrite  = "write"  // the ledger took the write
	didRefuse = "refuse" // the ledger refused the write
	didLose   = "lose"   // the lease ended, and not by the worker's doing
	didRest   = "rest"   // carries out doRest
)
