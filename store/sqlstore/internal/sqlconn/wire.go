// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Routines in the database do all the work on locks. A whole batch is one call of one
// routine, which is one round trip and one transaction. The routines are in each store's
// directory schema. They take and return JSON, so that a batch of any length is the same
// statement in every dialect.

// An Item is one request to a routine. Each routine reads some of these fields.
type Item struct {
	Key    string `json:"key"`
	Name   string `json:"name,omitempty"` // where Key is a hash
	Owner  string `json:"owner,omitempty"`
	TTL    int64  `json:"ttl,omitempty"` // µs, as are all times here
	Holder string `json:"holder"`
	Token  int64  `json:"token"`

	Grant  int64  `json:"grant,omitempty"`
	Alive  int64  `json:"alive,omitempty"`
	Wait   bool   `json:"wait"`
	Limit  int    `json:"limit"`
	Ticket int64  `json:"ticket"`
	Watch  bool   `json:"watch"`
	Inbox  string `json:"inbox"`

	Keep      int64 `json:"keep"`
	Uncertain bool  `json:"uncertain"`
	Requeue   *Item `json:"requeue,omitempty"`

	Share *Share `json:"share,omitempty"` // nil: all of the key
	Rest  *Share `json:"rest,omitempty"`  // what a release keeps; nil: nothing

	Seq  int64  `json:"seq,omitempty"`  // of a note
	Note []byte `json:"note,omitempty"` // in base64

	// InLine is how long a request of one item waits for its row. Only MySQL's routines read it.
	InLine int64 `json:"in_line,omitempty"`

	After  string `json:"after"`
	Prefix string `json:"prefix"`
	Size   int    `json:"size,omitempty"`
}

// A Share is what an owner takes of a key, if that is not all of it.
type Share struct {
	Mode    store.Mode `json:"mode"`
	Weight  int32      `json:"weight"`
	Extra   int32      `json:"extra"`
	Permits int32      `json:"permits"`
}

// share returns the share of a request.
func share(s store.Share, extra int32) *Share {
	if s.Mode == store.Exclusive {
		return nil
	}
	return &Share{s.Mode, s.Weight, extra, s.Limit}
}

// A Reply is the result of a routine: the server's clock, in µs since 1970, and an answer for
// each item.
type Reply struct {
	Clock int64    `json:"clock"`
	Items []Answer `json:"items"`
}

// An Answer has some of these fields.
type Answer struct {
	Status  int    `json:"s"`
	Held    bool   `json:"held"`
	Token   int64  `json:"token"`
	Clocked bool   `json:"clocked"`
	Left    int64  `json:"left"` // µs
	Holder  string `json:"holder"`
	Client  string `json:"client"`
	Key     string `json:"key"`
	Name    string `json:"name"`

	Waiters int     `json:"waiters"`
	Rank    int     `json:"rank"`
	Ticket  int64   `json:"ticket"`
	Mark    int64   `json:"mark"`
	Requeue *Answer `json:"requeue"`
	Queue   []struct {
		Holder string `json:"holder"`
		Age    int64  `json:"age"` // µs
	} `json:"queue"`

	Note      []byte `json:"note"` // in base64
	NoteToken int64  `json:"note_token"`
	Clock     int64  `json:"clock"` // the server's, in µs since 1970

	// Of an owner that shares the key:
	Fence  int64 `json:"fence"`
	Weight int32 `json:"weight"`
	Limit  int32 `json:"limit"` // of permits: that in force
	// Of all that share the key, of whom Holder is one and Left is the longest TTL:
	Mode    store.Mode `json:"mode"`
	Count   int        `json:"count"`
	Used    int        `json:"used"`
	Permits int        `json:"permits"` // the limit in force for them
	Stored  int        `json:"stored"`  // the limit that is stored, whoever has the key
	Soonest int64      `json:"soonest"` // µs, the shortest TTL
	Holders []struct { // the first of them
		Holder string `json:"holder"`
		Token  int64  `json:"token"`
		Weight int    `json:"weight"`
		Left   int64  `json:"left"` // µs
	} `json:"holders"`
}

// Values of s in the answers of routines.
const (
	StatusGranted = 1
	StatusWaiting = 2
	StatusHeld    = 3
	StatusFull    = 4
	StatusGone    = 5
	StatusTooMuch = 6
	StatusLocked  = -4 // the row, not the lock; only for one of several items

	statusExpired = -2
	statusStolen  = -3
	statusNoPart  = -5 // the rest is no part of what is held
)

// ErrReply is returned if a routine's answer is not one that this release knows.
var ErrReply = errors.New("database: unexpected answer of a routine: is the schema of another release?")

// ReadReply reads the result of a routine.
func ReadReply(text string) (Reply, error) {
	var r Reply
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrReply, err)
	}
	if r.Clock <= 0 {
		return r, ErrReply
	}
	return r, nil
}

// Remaining returns how long it takes until who wants the share may have it, or -1 if that is
// unknown. It is never zero: a lock that ends right now is still held, and a lock that has ended
// meanwhile may be held by another owner. Permits may become free with the first holding that ends.
func (a Answer) Remaining(wanted store.Share) time.Duration {
	left := a.Left
	if wanted.Mode == store.Permits && a.Count > 0 {
		left = a.Soonest
	}
	if left <= 0 {
		return -1
	}
	return span(left)
}

// span returns a time that a routine gave, and 292 years for a longer one.
func span(micros int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Microsecond)
	return time.Duration(max(min(micros, most), -most)) * time.Microsecond
}

// Micros writes a duration, rounded up: a TTL must not be shorter than what the
// client counts on.
func Micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// IsGrant reports whether the numbers of an answer can be those of a grant.
func (a Answer) IsGrant() bool {
	return a.Token > 0 && a.Fence >= 0 && a.Fence <= a.Token && a.Weight >= 0 && a.Weight <= store.MaxPermits
}

// IsLimit reports whether the limit of an answer can be one.
func (a Answer) IsLimit() bool { return a.Limit >= 0 && a.Limit <= store.MaxPermits }

// errNoPart is the error of a release that keeps what the owner does not have.
var errNoPart = fmt.Errorf("%w: the rest is no part of what is held", store.ErrInvalidOption)

// Kept returns the numbers of what a release has kept, or an error if it can't be kept.
func (a Answer) Kept(rest *store.Share) (grant store.Grant, err error) {
	switch {
	case a.Status == statusNoPart:
		return grant, errNoPart
	case rest == nil, rest.Mode != store.Shared, !a.Held:
		return grant, nil
	case !a.IsGrant() || a.Fence == 0:
		return grant, ErrReply
	}
	return store.Grant{Token: a.Token, Fence: a.Fence}, nil
}

// NotHeld returns why a release found nothing held, or nil if it was held. The routine of an older
// release does not say why.
func (a Answer) NotHeld() error {
	switch {
	case a.Held:
		return nil
	case a.Status == statusExpired:
		return store.ErrExpired
	case a.Status == statusStolen:
		return store.ErrStolen
	}
	return store.ErrLost
}

// Renewed returns why a holding was not renewed, or nil if it was.
func (a Answer) Renewed() error {
	switch a.Status {
	case StatusGranted:
		return nil
	case statusExpired:
		return store.ErrExpired
	case statusStolen:
		return store.ErrStolen
	}
	return ErrReply
}
