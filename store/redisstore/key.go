// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strings"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// The Redis keys of the lock "order:42" are
//
//	asynclock:{b5c}:order:42:l    the holder's record
//	asynclock:{b5c}:order:42:q    the queue, w its details
//	asynclock:{b5c}:order:42:f    the counter
//	asynclock:{b5c}:order:42:x    withdrawn owners
//	asynclock:{b5c}:order:42:s    those who share the key, h their details
//	asynclock:{b5c}:order:42:m    how many permits there are, if that was set
//	asynclock:{b5c}:order:42:n    the note
//	asynclock:{b5c}:e             the epoch, of all keys of the bucket, and g how its grace began
//
// The braces make a Cluster put them into one slot. They hold a bucket, not the
// key, because a message that a script sends in a Cluster must go to a channel
// of its slot, and a client can't subscribe once per key. The layout is the same
// everywhere, so that a client that takes a Cluster's node for a standalone
// server (see slotted in Store), or whose data has moved, excludes the others.

// buckets is the number of buckets. Clients with different numbers would not
// exclude each other, so this never changes.
const buckets = 256

// bucketOf is FNV-1a, folded to 8 bits. It never changes either.
func bucketOf(key string) int {
	hash := uint32(2166136261)
	for i := range len(key) {
		hash = (hash ^ uint32(key[i])) * 16777619
	}
	hash ^= hash >> 16
	return int((hash ^ hash>>8) & (buckets - 1))
}

const hexDigits = "0123456789abcdef"

// appendTag appends the bucket in braces.
func appendTag(b []byte, bucket int) []byte {
	return append(b, '{', 'b', hexDigits[bucket>>4], hexDigits[bucket&15], '}')
}

// appendKey appends the Redis key of one kind.
func appendKey(b []byte, prefix string, bucket int, key string, kind byte) []byte {
	b = append(b, prefix...)
	b = append(b, ':')
	b = appendTag(b, bucket)
	b = append(b, ':')
	b = appendEncoded(b, key)
	return append(b, ':', kind)
}

// appendEpoch appends the Redis key of a bucket's epoch. No lock has it: theirs have
// one colon more.
func appendEpoch(b []byte, prefix string, bucket int) []byte {
	b = append(b, prefix...)
	b = append(b, ':')
	b = appendTag(b, bucket)
	return append(b, ":e"...)
}

// appendEncoded appends key. It percent-encodes bytes that would end the braces early, mean
// something in a pattern, or mislead a reader. It works byte by byte, so a prefix of a key
// becomes a prefix of its encoding.
func appendEncoded(b []byte, key string) []byte {
	for i := range len(key) {
		if c := key[i]; mustEncode(c) {
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}

const upperHex = "0123456789ABCDEF"

func mustEncode(c byte) bool {
	switch c {
	case '%', '{', '}', '*', '?', '[', ']', '\\':
		return true
	}
	return c <= ' ' || c > '~'
}

// decode undoes appendEncoded. It accepts only what that writes.
func decode(encoded string) (key string, ok bool) {
	b := make([]byte, 0, len(encoded))
	for i := 0; i < len(encoded); i++ {
		c := encoded[i]
		if c == '%' {
			if i+2 >= len(encoded) {
				return "", false
			}
			high, low := strings.IndexByte(upperHex, encoded[i+1]), strings.IndexByte(upperHex, encoded[i+2])
			if high < 0 || low < 0 {
				return "", false
			}
			c = byte(high<<4 | low)
			if !mustEncode(c) {
				return "", false
			}
			i += 2
		} else if mustEncode(c) {
			return "", false
		}
		b = append(b, c)
	}
	return string(b), true
}

// parseKey finds the lock's key and the kind in a Redis key. It is not ok for
// Redis keys that are not ours.
func parseKey(prefix, redisKey string) (key string, kind byte, ok bool) {
	rest, found := strings.CutPrefix(redisKey, prefix+":{b")
	const tagEnd = len("5c}:")
	if !found || len(rest) < tagEnd+len("k:l") || rest[2:tagEnd] != "}:" || rest[len(rest)-2] != ':' {
		return "", 0, false
	}
	key, ok = decode(rest[tagEnd : len(rest)-2])
	if !ok || redisconn.CheckKey(key) != nil || string(appendTag(nil, bucketOf(key))) != "{b"+rest[:3] {
		return "", 0, false
	}
	return key, rest[len(rest)-1], true
}

// matchKeys is a pattern for SCAN: the holders' records and queues of all keys
// with the prefix.
func matchKeys(prefix, keyPrefix string) string {
	return prefix + ":{b*}:" + string(appendEncoded(nil, keyPrefix)) + "*:[lq]"
}
