// SPDX-License-Identifier: Apache-2.0

package redisconn

// MaxFieldLen is the longest owner or client id, in bytes.
const MaxFieldLen = 128

// IsField reports whether s, an owner or a client id, is valid in scripts and messages: printable
// ASCII without spaces, at most [MaxFieldLen] bytes. A lone hyphen is not valid, because it stands
// for "none" there.
func IsField(s string) bool {
	if s == "" || s == "-" || len(s) > MaxFieldLen {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
