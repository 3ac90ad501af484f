// SPDX-License-Identifier: Apache-2.0

package springredis

import "strings"

// Messages on the registry's channels are
//
//	shop:order:42                    the lock with this Redis key is free
//	asynclock.spring:forced OWNER    a key was taken from OWNER by force
//
// The former is Java's. The latter is ours and no Java registry's business: it
// looks for what it is told among the keys that it waits for, and does not find
// it. Channels are no secret, so what comes in may come from anyone.

const forcedPrefix = sidePrefix + ":forced "

// parseForced finds the owner in a message of the second kind.
func parseForced(payload string) (owner string, ok bool) {
	owner, found := strings.CutPrefix(payload, forcedPrefix)
	return owner, found && isField(owner)
}

// maxFieldLen bounds owners and client ids.
const maxFieldLen = 128

// isField reports whether s can be an owner in a lock's value or message:
// printable ASCII without spaces. A lone hyphen stands for "none" there.
func isField(s string) bool {
	if s == "" || s == "-" || len(s) > maxFieldLen {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
