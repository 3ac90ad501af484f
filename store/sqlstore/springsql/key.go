// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"crypto/md5"
	"crypto/sha256"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

var uuidPattern = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// lockKey is LOCK_KEY as Java's UUIDConverter makes it: a key that looks like a UUID
// is one, in lower case; any other is hashed as UUID.nameUUIDFromBytes does, which
// is MD5 of its UTF-8 with the marks of version 3, and no namespace.
func lockKey(key string) string {
	if uuidPattern.MatchString(key) {
		return strings.ToLower(key)
	}
	id := uuid.UUID(md5.Sum([]byte(key)))
	id[6] = id[6]&0x0f | 0x30
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// Spell returns a UUID in lower case, as lockKey does.
func (s *session) Spell(key string) string {
	if id := lockKey(key); strings.EqualFold(id, key) {
		return id
	}
	return key
}

// clientID is CLIENT_ID for an owner: as long as Java's, and unlike all of them by
// its version, 8. It is a hash, so that the owner stays a secret of its client.
func clientID(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
