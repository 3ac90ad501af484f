// SPDX-License-Identifier: Apache-2.0

// Package redisslot computes where a Redis Cluster has a key, and names for further keys that are to be beside it.
package redisslot

import (
	"strconv"
	"strings"
	"sync"
)

// count is how many parts a Redis Cluster divides its keys into.
const count = 16384

// Of returns the slot of a Redis key: a checksum of its [Hashed] part.
func Of(redisKey string) int { return int(crc16(Hashed(redisKey)) % count) }

// Hashed returns the part of a Redis key that decides its slot: what the first pair of braces encloses, or all of it if
// they enclose nothing or are not there.
func Hashed(redisKey string) string {
	if _, rest, found := strings.Cut(redisKey, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return redisKey
}

// Tag returns the smallest number whose slot is that of a Redis key. Another key that has it in braces is where this
// one is, whatever braces this one has itself.
func Tag(redisKey string) string { return tags()[Of(redisKey)] }

// crc16 is the checksum of XMODEM, as the Cluster specification wants it.
func crc16(text string) (sum uint16) {
	for i := range len(text) {
		sum ^= uint16(text[i]) << 8
		for range 8 {
			carry := sum & 0x8000
			sum <<= 1
			if carry != 0 {
				sum ^= 0x1021
			}
		}
	}
	return sum
}

// tags has the Tag of each slot. Clients with different ones would not share their tokens, so they never change.
var tags = sync.OnceValue(func() *[count]string {
	var found [count]string
	for n, missing := 0, count; missing > 0; n++ {
		tag := strconv.Itoa(n)
		if slot := Of(tag); found[slot] == "" {
			found[slot] = tag
			missing--
		}
	}
	return &found
})
