// SPDX-License-Identifier: Apache-2.0

package redisconn

// MaxFieldLen bounds owners and client ids, in bytes.
const MaxFieldLen = 128

// IsField reports whether s, an owner or a client id, can be a field of what scripts
// and messages carry: printable ASCII without spaces. A lone hyphen stands for "none"
// there.
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
