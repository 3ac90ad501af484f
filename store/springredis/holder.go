// SPDX-License-Identifier: Apache-2.0

package springredis

import "github.com/google/uuid"

// describe describes the holder of a lock whose value is not ours. A registry's id is its
// secret: a client that knows the id can release in the registry's name. The first digits are
// enough to tell two registries apart.
func describe(value string) string {
	const digits = 8
	if len(value) != 36 {
		return "another program"
	}
	if _, err := uuid.Parse(value); err != nil {
		return "another program"
	}
	return "Spring RedisLockRegistry " + value[:digits] + "…"
}
