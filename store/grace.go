// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"time"
)

// A GraceSession is a [Session] of a store that grants nothing for a while after its server may have forgotten leases
// ([ErrGrace]). A session without it has no such time, or can't tell.
type GraceSession interface {
	Session

	// Grace returns for how long the key is granted to nobody, even if nobody holds it; 0: it is granted. Without begun that time
	// begins with the next request. A request with an unusually long TTL may have to wait for longer. Grace changes nothing. The
	// errors are those of Inspect, and [ErrDenied] if this user may not know.
	Grace(ctx context.Context, key string) (left time.Duration, begun bool, err error)
}

// A GraceStore is a [Store] whose graces an operator can see, and end before their time.
type GraceStore interface {
	Store

	// Graces returns the graces of all servers, also those that begin with the next request. A server without one is left
	// out. One whose keys have different histories before has as many. If Graces also returns an error, there may be more,
	// on servers that did not answer. Graces changes nothing.
	Graces(ctx context.Context) ([]Grace, error)

	// EndGrace ends a grace before its time: from then on keys are granted. It is [ErrGraceChanged], and nothing has
	// changed, if the server has another history by now, or none of its keys had that one before. Without NothingLost it is
	// [ErrGraceUnproven] if there is no proof. There is none, and no end, if the server's clock is ahead, or was set back.
	// EndGrace can be repeated. If it returns Ended and an error, other parts of the keys are as before.
	EndGrace(ctx context.Context, end GraceEnd) (GraceEnded, error)
}

// A Grace is a time in which a server grants nothing, because it may have forgotten leases.
type Grace struct {
	History string        // the id of the server's replication history, which is new
	Before  string        // the history before; "": not known, or there was none
	Why     GraceReason   // why it began
	Since   time.Time     // when it was first noticed, by the server's clock; zero: not yet, or not known
	Until   time.Time     // when the last key is granted again, by the server's clock; zero: it has not begun
	Left    time.Duration // until then, or, if it has not begun, for how long it will last
	Longest time.Duration // the longest TTL of a lease that may be forgotten

	Waiting int // parts of the keys that are granted to nobody now
	Unused  int // parts in which that begins with the next request
	Parts   int // parts that the server has, or, of those with different histories before, that have this one

	// Evidence is what can be known about what was lost, and what can't. With Proven nothing is missing that the server
	// before has executed, as far as it can be known.
	Evidence []Finding
	Proven   bool
}

// A GraceReason is why a server may have forgotten leases.
type GraceReason int

// The reasons.
const (
	GraceUnknown  GraceReason = iota // a client that does not say so has noticed it
	GraceStarted                     // the server was started
	GracePromoted                    // a replica was promoted
	GraceMoved                       // the keys came from another server of a Cluster, or more than one was promoted meanwhile
	GraceClock                       // the server's clock was set back
)

var graceReasons = [...]string{"unknown", "started", "promoted", "moved", "clock set back"}

// String returns the reason in one or a few words.
func (r GraceReason) String() string {
	if r < 0 || int(r) >= len(graceReasons) {
		return graceReasons[GraceUnknown]
	}
	return graceReasons[r]
}

// A GraceEnd says which grace is to end.
type GraceEnd struct {
	History, Before string // of the Grace that is meant
	// NothingLost says that the caller knows by other means that the server lacks no write that the one before has
	// acknowledged, and that its clock is not ahead. If that is wrong, two may hold one key.
	NothingLost bool
}

// A GraceEnded is what has become of a grace.
type GraceEnded struct {
	Ended    int           // parts of the keys that are granted from now on, or at the latest when Left has passed
	Unproven int           // parts that are granted to nobody, as before
	Left     time.Duration // of a grace that the history before had of its own; mostly 0
	Woken    int           // waiters that were told, and ask again; the others do within seconds
}

var (
	// ErrGraceChanged means that the server has another history than the one whose grace was to end. Nothing was changed.
	ErrGraceChanged = errors.New("asynclock: no server has this history")

	// ErrGraceUnproven means that nobody has proven that nothing was lost. Parts of the keys are still granted to nobody.
	ErrGraceUnproven = errors.New("asynclock: it is not proven that nothing was lost")
)
