// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"strconv"
	"strings"
	"sync"
)

// slots is how many parts a Redis Cluster divides its keys into.
const slots = 16384

// slotOf is the slot of a Redis key: a checksum of what the first pair of braces
// encloses, or of all of it if they enclose nothing or are not there.
func slotOf(redisKey string) int {
	if _, rest, found := strings.Cut(redisKey, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			redisKey = tag
		}
	}
	return int(crc16(redisKey) % slots)
}

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

// tags has for each slot the smallest number that is in it. A side key puts it in
// braces to be where its lock is, whatever braces the lock's own key has.
// Clients with different tags would not share their tokens, so they never change.
var tags = sync.OnceValue(func() *[slots]string {
	var found [slots]string
	for n, missing := 0, slots; missing > 0; n++ {
		tag := strconv.Itoa(n)
		if slot := slotOf(tag); found[slot] == "" {
			found[slot] = tag
			missing--
		}
	}
	return &found
})
