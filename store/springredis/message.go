// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"strings"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// Messages on the registry's channels are
//
//	shop:order:42                    the lock with this Redis key is free
//	asynclock.spring:forced OWNER    a key was taken from OWNER by force
//
// The first is Java's. The second is ours, and a Java registry ignores it, because it is not
// among the keys that the registry waits for. Channels are no secret, so a message may come
// from anyone.

const forcedPrefix = sidePrefix + ":forced "

// parseForced finds the owner in a message of the second kind.
func parseForced(payload string) (owner string, ok bool) {
	owner, found := strings.CutPrefix(payload, forcedPrefix)
	return owner, found && redisconn.IsField(owner)
}
