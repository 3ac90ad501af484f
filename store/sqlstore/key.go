// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/store"
)

// checkKey reports whether key can name a lock, as asynclock.New's client does
// before it asks; others may not.
func checkKey(key string) error {
	if key == "" || len(key) > store.MaxKeyLen || !utf8.ValidString(key) {
		return fmt.Errorf("%w: must be UTF-8 of 1 to %d bytes", store.ErrBadKey, store.MaxKeyLen)
	}
	return nil
}

// keyName is how a key is written in the database: as it is, but for what texts of
// SQL or JSON can't hold or people can't read there, which is percent-encoded. No
// two keys have the same name, and a prefix of a key has a prefix of its name.
func keyName(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c < ' ' || c == 0x7f || c == '%' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// keyOf finds the key that has a name.
func keyOf(name string) (key string, ok bool) {
	key, ok = decodeName(name)
	return key, ok && checkKey(key) == nil && keyName(key) == name
}

// decodeName undoes keyName.
func decodeName(name string) (text string, ok bool) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(name, "%")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		c, err := strconv.ParseUint(after[:min(len(after), 2)], 16, 8)
		if err != nil || len(after) < 2 {
			return "", false
		}
		b.WriteByte(byte(c))
		name = after[2:]
	}
}

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

// clientID is CLIENT_ID for an owner: as long as Java's, and unlike all of them by
// its version, 8. It is a hash, so that the owner stays a secret of its client.
func clientID(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
