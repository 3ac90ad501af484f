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
//	g owner token ttl waiters clocked   the owner holds its key, for ttl ms
//	c owner                             somebody queued behind the owner
//	w owner                             somebody asked in vain for what the owner has
//	a owner                             the owner, a waiter, should ask again
//	r owner                             the key was taken from the owner
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
	case "g":
		event.Kind = store.EventGrant
	default:
		return event, false
	}

	var numbers [4]int64
	for i, limit := range [4]int64{redisconn.MaxGiven, math.MaxInt64 / int64(time.Millisecond), math.MaxInt32, 1} {
		var digits string
		if !more {
			return event, false
		}
		digits, rest, more = strings.Cut(rest, " ")
		if numbers[i], ok = parseNumber(digits, limit); !ok {
			return event, false
		}
	}
	event.Grant = store.Grant{Token: numbers[0], TokensFollowClock: numbers[3] == 1}
	event.GrantTTL = time.Duration(numbers[1]) * time.Millisecond
	event.Waiters = int(numbers[2])
	return event, !more && event.Grant.Token > 0 && event.GrantTTL > 0
}

// parseNumber reads decimal digits and nothing else.
func parseNumber(digits string, limit int64) (int64, bool) {
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n <= limit
}
