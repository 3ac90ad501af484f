// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// What a script answers in the first place of a list, besides the values of
// [store.AcquireStatus] up to Withdrawn, which the scripts use as they are.
const (
	replyForeign = -1
	replyGrace   = 6
	replyHidden  = 7
	replyWide    = 8 // others share the key
	replyShare   = 9 // granted a share
	replyTooMuch = 10
	replyAgain   = -6 // more was to be dropped than one step may, and nothing else was changed
)

// A reply reads a list that a script answered. After the last read, err says
// whether all of it was there and of the right type.
type reply struct {
	redisdriver.Items

	err    error
	hidden bool // the server hides its history; see errHidden
	wide   bool // the key is shared; see errWide

	sighting *sighting // what the reply says about the server, if it says that
	opened   string    // the history whose grace somebody has ended, if the reply says that
}

func newReply(result redisdriver.Result) reply {
	list, err := result.List()
	return reply{Items: list, err: err}
}

func (r *reply) number() int64 {
	if r.err != nil {
		return 0
	}
	n, ok := r.Integer()
	if !ok {
		r.err = errReply
	}
	return n
}

// between reads a number and refuses those outside the bounds.
func (r *reply) between(low, high int64) int64 {
	n := r.number()
	if r.err == nil && (n < low || n > high) {
		r.err = errReply
	}
	if r.err != nil {
		return 0
	}
	return n
}

func (r *reply) text() string {
	if r.err != nil {
		return ""
	}
	text, ok := r.Text()
	if !ok {
		r.err = errReply
	}
	return text
}

func (r *reply) token() int64 { return r.between(0, redisconn.MaxGiven) }

func (r *reply) count() int { return int(r.between(0, math.MaxInt32)) }

// left reads what remains of a TTL.
func (r *reply) left() time.Duration { return redisconn.Left(r.between(-2, math.MaxInt64)) }

// millis reads a time of ours. It is negative where there is none.
func (r *reply) millis() time.Duration {
	return time.Duration(r.between(-2, redisconn.MaxGiven/1000)) * time.Millisecond
}

// failed turns r's error, if there is one, into one of asynclock's.
func (r *reply) failed(st *Store) error {
	if r.err == nil || errors.Is(r.err, errReply) || errors.Is(r.err, store.ErrForeignData) {
		return r.err
	}
	return st.conn.Failure(r.err)
}

// acquireReply reads what acquire.lua answers.
func (r *reply) acquireReply() (answer store.AcquireReply) {
	status := r.number()
	if r.err != nil {
		return answer
	}
	switch answer.Status = store.AcquireStatus(status); answer.Status {
	case store.Granted:
		answer.Token = r.between(1, redisconn.MaxGiven)
		answer.Waiters = r.count()
		answer.TokensFollowClock = r.between(0, 1) == 1
		if r.More() {
			history, longest := r.text(), r.millis()
			if opened, ok := strings.CutPrefix(history, "o"); ok {
				r.opened = opened
			} else {
				r.sighting = &sighting{history: history, longest: longest, clock: answer.Token, at: time.Now()}
			}
		}
	case store.Waiting:
		answer.Rank = r.count()
		answer.Remaining = r.left()
		answer.Ticket = r.between(1, redisconn.MaxGiven)
		answer.Mark = r.token()
		answer.Grace = max(r.millis(), 0)
		answer.HolderToken = r.token()
		answer.Holder = r.text()
		answer.Limit, answer.Used = r.permitsIfAny()
	case store.Held:
		answer.HolderToken = r.token()
		answer.Remaining = r.left()
		answer.Waiters = r.count()
		answer.Holder = r.text()
		answer.HolderNotified = r.between(0, 1) == 1
		answer.Limit, answer.Used = r.permitsIfAny()
	case store.Full:
		answer.Waiters = r.count()
		answer.Limit, _ = r.permitsIfAny()
	case store.Withdrawn:
	case replyGrace:
		answer.Status = 0
		if answer.Grace = max(r.millis(), 0); r.err == nil {
			answer.Err = graceError(answer.Grace)
		}
	case replyHidden:
		answer.Status = 0
		answer.Err = errHidden
		r.hidden = true
	case replyWide:
		answer.Status = 0
		answer.Err = errWide
		r.wide = true
	case replyShare:
		answer.Status = store.Granted
		answer.Token = r.between(1, redisconn.MaxGiven)
		answer.Waiters = r.count()
		answer.Fence = r.token()
		answer.Weight = int32(r.between(0, store.MaxPermits))
		answer.Limit = int32(r.between(0, store.MaxPermits))
	case replyTooMuch:
		answer.Status = store.TooMuch
		answer.Limit = int32(r.between(1, store.MaxPermits))
	case replyForeign:
		answer.Status = 0
		answer.Err = foreign(r.text())
	case replyAgain:
		answer.Status = 0
		answer.Err = errAgain
	default:
		answer.Status = 0
		r.err = errReply
	}
	return answer
}

// permitsIfAny reads the limit in force and how many permits are out, with which the reply to a request for
// permits ends.
func (r *reply) permitsIfAny() (limit int32, used int) {
	if !r.More() {
		return 0, 0
	}
	return int32(r.between(0, store.MaxPermits)), r.count()
}

// foreign reads the name of a Redis key that is not of this library, which is an error.
func (r *reply) foreign() {
	if name := r.text(); r.err == nil {
		r.err = foreign(name)
	}
}

// otherHolder reads who holds the key, where force.lua took nothing.
func (r *reply) otherHolder(key string) store.Info {
	info := store.Info{Key: key, Held: true}
	switch status := r.number(); {
	case r.err != nil || status == int64(store.Held):
	case status == replyForeign:
		r.foreign()
	default:
		r.err = errReply
	}
	info.Token = r.token()
	info.Remaining = r.left()
	info.Waiters = r.count()
	info.Holder = r.text()
	return info
}

// info reads what inspect.lua answers: a description, and the ticket behind which there are other waiters, or 0.
func (r *reply) info(key string) (info store.Info, after int64) {
	info.Key = key
	switch r.number() {
	case 0:
	case 1:
		info.Held = true
	case replyForeign:
		r.foreign()
	default:
		r.err = errReply
	}
	info.Token = r.token()
	info.Remaining = r.left()
	info.Holder = r.text()
	info.Waiters = r.count()
	after = r.token()
	info.Mode = store.Mode(r.between(0, int64(store.Permits)))
	info.Used, info.Limit = r.count(), r.count()
	for n := r.count(); n > 0 && r.err == nil; n-- {
		info.Holders = append(info.Holders, store.HolderInfo{
			Holder: r.text(), Token: r.token(), Weight: r.count(), Remaining: r.left(),
		})
	}
	for r.err == nil && r.More() {
		info.Queue = append(info.Queue, store.WaiterInfo{Holder: r.text(), Age: r.millis()})
	}
	return info, after
}
