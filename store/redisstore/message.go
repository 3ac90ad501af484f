// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// parseMessage reads a message of an inbox:
//
//	g owner token ttl waiters clocked       the owner holds its key, for ttl ms
//	s owner token ttl waiters fence weight  likewise a share: of readers the fence, or permits
//	c owner                                 somebody queued behind the owner
//	w owner                                 somebody asked in vain for what the owner has
//	a owner                                 the owner, a waiter, should ask again
//	r owner                                 the key was taken from the owner
//
// It accepts exactly what the scripts write. Channels are no secret, so a message may come
// from anyone.
func parseMessage(payload string) (event store.Event, ok bool) {
	kind, rest, _ := strings.Cut(payload, " ")
	owner, rest, more := strings.Cut(rest, " ")
	if !redisconn.IsField(owner) {
		return event, false
	}
	event.Owner = owner
	switch kind {
	case "c":
		event.Kind = store.EventQueued
		return event, !more
	case "w":
		event.Kind = store.EventRequested
		return event, !more
	case "a":
		event.Kind = store.EventWake
		return event, !more
	case "r":
		event.Kind = store.EventForced
		return event, !more
	case "g", "s":
		return parseGrant(event, kind, rest, more)
	}
	return event, false
}

// parseGrant reads the rest of a message about a grant: of all of a key (g), or of a share (s). A
// reader has a fence, and who has permits has a weight.
func parseGrant(event store.Event, kind, rest string, more bool) (store.Event, bool) {
	limits := []int64{redisconn.MaxGiven, math.MaxInt64 / int64(time.Millisecond), math.MaxInt32, 1}
	if kind == "s" {
		limits = []int64{redisconn.MaxGiven, math.MaxInt64 / int64(time.Millisecond), math.MaxInt32, redisconn.MaxGiven, store.MaxPermits}
	}
	var numbers [5]int64
	for i, limit := range limits {
		var digits string
		var ok bool
		if !more {
			return event, false
		}
		digits, rest, more = strings.Cut(rest, " ")
		if numbers[i], ok = parseNumber(digits, limit); !ok {
			return event, false
		}
	}
	event.Kind = store.EventGrant
	event.Grant.Token = numbers[0]
	event.GrantTTL = time.Duration(numbers[1]) * time.Millisecond
	event.Waiters = int(numbers[2])
	sound := !more && event.Grant.Token > 0 && event.GrantTTL > 0
	if kind == "g" {
		event.Grant.TokensFollowClock = numbers[3] == 1
		return event, sound
	}
	event.Grant.Fence, event.Grant.Weight = numbers[3], int32(numbers[4])
	return event, sound && event.Grant.Fence <= event.Grant.Token && (event.Grant.Fence > 0) == (event.Grant.Weight == 0)
}

// parseNumber reads decimal digits and nothing else.
func parseNumber(digits string, limit int64) (int64, bool) {
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n <= limit
}
