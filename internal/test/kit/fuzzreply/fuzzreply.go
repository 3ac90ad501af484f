// SPDX-License-Identifier: Apache-2.0

// Package fuzzreply makes replies of Redis from what a fuzzer thinks up, for the
// stores that read such replies. It is for tests.
package fuzzreply

import (
	"encoding/binary"

	"github.com/redis/rueidis"
)

// maxDepth is how deep lists may be in each other, and maxLength how long.
const (
	maxDepth  = 3
	maxLength = 20
)

// Message makes a message of data: i and an integer of one byte, t and a text behind its
// length, e and an error likewise, l and a list behind its length, n for null, b for true.
// Missing elements are null.
func Message(data []byte) (m rueidis.RedisMessage, err error) {
	wire, _ := appendMessage(make([]byte, 7), data, maxDepth) // 7 bytes of TTL
	return m, m.CacheUnmarshalView(wire)
}

// appendMessage appends the form in which rueidis caches messages.
func appendMessage(wire, data []byte, depth int) (_, rest []byte) {
	header := func(kind byte, n int64) { wire = binary.BigEndian.AppendUint64(append(wire, kind), uint64(n)) }
	kind, length := byte('n'), 0
	if len(data) > 0 {
		kind, data = data[0], data[1:]
	}
	if len(data) > 0 && kind != 'n' && kind != 'b' {
		length, data = int(int8(data[0])), data[1:]
	}
	switch {
	case kind == 'i':
		header(':', int64(length))
	case kind == 't' || kind == 'e':
		n := min(max(length, 0), len(data))
		header(map[byte]byte{'t': '$', 'e': '-'}[kind], int64(n))
		wire, data = append(wire, data[:n]...), data[n:]
	case kind == 'l' && depth > 0:
		n := min(max(length, 0), maxLength)
		header('*', int64(n))
		for range n {
			wire, data = appendMessage(wire, data, depth-1)
		}
	case kind == 'b':
		header('#', 1)
	default:
		header('_', 0)
	}
	return wire, data
}
