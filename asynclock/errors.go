// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
)

// A call of a client or a lease returns one of these errors inside an [*Error]; ErrHeld comes as a
// [*HeldError] in it. New and [Lease.Err] return them without an *Error. Test with [errors.Is]. A wait that ended because its context ended returns the context's own error,
// context.Canceled or context.DeadlineExceeded, and its cause.
var (
	// ErrHeld: TryLock found the key held, or others ahead in its queue. Or a wait ended, and then the
	// error also matches the context's. Or ForceUnlock found another holder than the one that was
	// meant. [HeldError] says who holds the key.
	ErrHeld = machine.ErrHeld

	// ErrQueueFull: as many as allowed are already waiting for the key.
	ErrQueueFull = machine.ErrQueueFull

	// ErrUnreachable: the store can't be reached, or refuses for now (it is loading, failing over,
	// out of memory).
	ErrUnreachable = store.ErrUnreachable

	// ErrGrace: the server may have forgotten leases, because it was started or promoted lately. It
	// grants nothing until they have ended. ErrGrace also matches ErrUnreachable. [GraceError] says
	// how long the grace lasts.
	ErrGrace = store.ErrGrace

	// ErrTooSlow: the store answers, but too late for this TTL: most of it had passed. The key was
	// given back. ErrTooSlow also matches ErrUnreachable.
	ErrTooSlow = machine.ErrTooSlow

	// ErrOutcomeUnknown: the request was sent and no answer came. The client confirms or undoes its
	// effect in the background, at the latest by the TTL.
	ErrOutcomeUnknown = store.ErrOutcomeUnknown

	// ErrUnlocked: the holder ended the lease with Unlock.
	ErrUnlocked = machine.ErrUnlocked

	// ErrLost: the lease ended by anything except Unlock and Close. Each of the five below also
	// matches ErrLost. On ZooKeeper the error may be none of them, and says how the holding ended.
	ErrLost = store.ErrLost
	// ErrExpired: the trust deadline passed, because renewal was off or the process did not run in
	// time. Or the store says that nobody has the key: it forgot the key, or somebody took it with
	// ForceUnlock and the notification has not come yet.
	ErrExpired = store.ErrExpired
	// ErrStolen: the store says that another owner has the key.
	ErrStolen = store.ErrStolen
	// ErrForced: a message said that somebody took the key with ForceUnlock, and the store says that the
	// holding is over. On ZooKeeper: somebody deleted the node, or asked for it by revocation.
	ErrForced = store.ErrForced
	// ErrMaxHold: the lease reached WithMaxHold.
	ErrMaxHold = machine.ErrMaxHold
	// ErrNotRenewed: the trust deadline passed while every renewal failed. It comes together with
	// the last failure, usually ErrUnreachable.
	ErrNotRenewed = machine.ErrNotRenewed

	// ErrLockOrder: LockAll was called under a lease of one of the keys, and another of them sorts
	// before it. The call would wait for a smaller key while it holds a larger one. Two such callers
	// could wait for each other.
	ErrLockOrder = errors.New("asynclock: a key that is not held sorts before one that is held")

	// ErrPermits: a request for more permits than the semaphore has.
	ErrPermits = machine.ErrPermits

	// ErrReentry: the context of the call was made under a lease of the same key, and the call does not join
	// it. It would wait for that lease, and so possibly for its own caller. Unlock that lease first, or let the
	// call join it by [WithReentry](true). Work that may run after the lease takes the context from outside it.
	ErrReentry = errors.New("asynclock: the context was made under a lease of this key: unlock that first, " +
		"join it by WithReentry(true), or wait with the context from outside")

	// ErrUpgrade is the ErrReentry, which it also matches, of a call that can't join: it wants the key in another
	// way. It wants the key for itself under a reader's lease, or permits under a writer's. Two such callers
	// would wait for each other. Unlock that lease first. WithReentry does not help.
	ErrUpgrade error = upgradeError{}

	// ErrClosed: the client is closed.
	ErrClosed = store.ErrClosed

	// ErrInvalidKey: the key is empty, too long or not UTF-8.
	ErrInvalidKey = store.ErrInvalidKey
	// ErrInvalidOption: an option or argument has an invalid value.
	ErrInvalidOption = store.ErrInvalidOption
	// ErrForeignData: the data stored under the key was not written by this library, or was
	// damaged. Nothing was changed.
	ErrForeignData = store.ErrForeignData
	// ErrUnsupported: the store can't do that, by its [store.Features]. Nothing was changed.
	ErrUnsupported = store.ErrUnsupported

	// ErrDenied: the store does not allow this user to do that.
	ErrDenied = store.ErrDenied
)

// An Error is a failed operation: what was being done, to which key, and why it failed.
type Error struct {
	// Op is lock, try lock, rlock, try rlock, semaphore, acquire, try acquire, set permits, downgrade, unlock,
	// renew, write note, read note, announce, observe, lock all, try lock all, renew all, unlock all, inspect, list, force unlock or close.
	Op  string
	Key string // empty if the operation is about no key, or about all
	Err error
}

func (e *Error) Error() string {
	about := e.Op
	if e.Key != "" {
		about += " " + strconv.Quote(e.Key[:min(len(e.Key), MaxKeyLen)])
	}
	if len(e.Key) > MaxKeyLen { // not a valid key, and possibly as long as somebody's request
		about += "..."
	}
	return "asynclock: " + about + ": " + failure.Text(e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// A PartError is why a [MultiLease] ended: its first part that ended, and the reason. The reason is
// what [Lease.Err] returns for one key.
type PartError struct {
	Key string
	Err error
}

func (e *PartError) Error() string {
	return "asynclock: " + strconv.Quote(e.Key) + " of several keys: " + failure.Text(e.Err)
}

// Unwrap returns Err.
func (e *PartError) Unwrap() error { return e.Err }

// A GraceError is [ErrGrace] with the time that remains of it. TryLock returns it inside an [*Error].
type GraceError = store.GraceError

// A HeldError is [ErrHeld] with what the store knows of the holder. If several hold the key together, Holder
// says how many they are, and Token is the largest of theirs. Of permits it may be that of a later grant, whose holder
// has left. Remaining is then their longest TTL, or for a request of permits their shortest.
type HeldError struct {
	Key       string
	Holder    string        // the holder's description of itself; empty if unknown
	Token     int64         // the holder's fencing token; 0 if unknown
	Remaining time.Duration // of the holder's TTL, which it may renew; negative if the store knows of no end
	Waiters   int           // how many clients are queued in the store; some may have died

	// Used and Limit are for requests of a [Semaphore]: how many permits are out, and how many there are. Used
	// is 0 if nobody has a permit, as while somebody holds the key by [Client.Lock]. If Used is less than
	// Limit, more were wanted than are left, or others are ahead in the queue.
	Used, Limit int
}

func (e *HeldError) Error() string {
	by := e.Holder
	if quoted := strconv.Quote(by); len(quoted) > len(by)+2 { // the description may contain anything
		by = quoted
	}
	if e.Used > 0 && e.Limit > 0 {
		return e.permits(by)
	}
	text := "asynclock: held by " + cmp.Or(by, "another")
	if e.Token != 0 {
		text += fmt.Sprintf(" with token %d", e.Token)
	}
	return text
}

// permits is the text about a semaphore.
func (e *HeldError) permits(by string) (text string) {
	switch {
	case e.Used >= e.Limit && e.Limit > 1: // it is more if the limit was made smaller
		text = fmt.Sprintf("asynclock: all %d permits are taken", e.Limit)
	case e.Used >= e.Limit:
		text = "asynclock: the only permit is taken"
	case e.Used > 1:
		text = fmt.Sprintf("asynclock: %d of %d permits are taken", e.Used, e.Limit)
	default:
		text = fmt.Sprintf("asynclock: 1 of %d permits is taken", e.Limit)
	}
	if by != "" {
		text += " (" + by + ")"
	}
	if e.Waiters > 0 {
		text += fmt.Sprintf(", %d waiting", e.Waiters)
	}
	return text
}

// Is reports that a HeldError is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// An upgradeError is ErrUpgrade. Its text advises nothing that does not help.
type upgradeError struct{}

func (upgradeError) Error() string {
	return "asynclock: the context was made under a lease of this key that has it in another way: unlock that first"
}

// Is reports that it is an ErrReentry.
func (upgradeError) Is(target error) bool { return target == ErrReentry }

// A noAnswerError is [ErrOutcomeUnknown] in the words of a caller: Lock promises that nothing is held
// after an error, so the outcome of its request is no question.
type noAnswerError struct{}

func (noAnswerError) Error() string { return "no answer in time" }

// Is reports that it is ErrOutcomeUnknown.
func (noAnswerError) Is(target error) bool { return target == ErrOutcomeUnknown }
