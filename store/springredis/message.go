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
// The former is Java's. The latter is ours and no Java registry's business: it
// looks for what it is told among the keys that it waits for, and does not find
// it. Channels are no secret, so what comes in may come from anyone.

const forcedPrefix = sidePrefix + ":forced "

// parseForced finds the owner in a message of the second kind.
func parseForced(payload string) (owner string, ok bool) {
	owner, found := strings.CutPrefix(payload, forcedPrefix)
	return owner, found && redisconn.IsField(owner)
}
