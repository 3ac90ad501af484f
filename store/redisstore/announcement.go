// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"math"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// parseAnnouncement reads a message of an observers' channel:
//
//	n key token seq remaining length holder data   a note was written: the TTL of its holder in ms, and the
//	                                               description of the holder, which has so many bytes
//	e key token                                    the lease with this token has ended
//
// The key is as in a Redis key. It accepts exactly what the scripts write. Channels are no secret, so a message may
// come from anyone.
func parseAnnouncement(payload string) (key string, a store.Announcement, ok bool) {
	kind, rest, _ := strings.Cut(payload, " ")
	encoded, rest, _ := strings.Cut(rest, " ")
	key, ok = decode(encoded)
	if !ok || redisconn.CheckKey(key) != nil {
		return "", a, false
	}
	switch kind {
	case "e":
		a.Ended = true
		a.Token, ok = parseNumber(rest, redisconn.MaxGiven)
	case "n":
		ok = parseNote(&a, rest)
	default:
		ok = false
	}
	return key, a, ok && a.Token > 0
}

// parseNote reads the rest of a message about a note.
func parseNote(a *store.Announcement, rest string) bool {
	var numbers [4]int64
	for i, limit := range [...]int64{redisconn.MaxGiven, redisconn.MaxGiven, store.MaxTTL.Milliseconds(), math.MaxInt16} {
		digits, after, more := strings.Cut(rest, " ")
		n, ok := parseNumber(digits, limit)
		if !ok || !more {
			return false
		}
		numbers[i], rest = n, after
	}
	length := int(numbers[3])
	if length >= len(rest) || rest[length] != ' ' || len(rest)-length-1 > store.MaxNoteLen {
		return false
	}
	a.Token, a.Seq, a.Remaining = numbers[0], numbers[1], time.Duration(numbers[2])*time.Millisecond
	a.Holder, a.Data = rest[:length], []byte(rest[length+1:])
	return a.Seq > 0
}
