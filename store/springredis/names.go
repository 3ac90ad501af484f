// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
)

// The Redis keys of the lock "order:42" of the registry key "shop" are
//
//	shop:order:42                             the lock, as in Java
//	asynclock.spring:{9208}:shop:order:42:f   the counter of its tokens
//	asynclock.spring:{9208}:shop:order:42:x   its withdrawn owners
//
// The latter two are side keys: Java neither reads nor writes them. The number
// in braces puts them into the lock's slot.
const sidePrefix = "asynclock.spring"

// names is what one registry key is called in Redis.
type names struct {
	registryKey string
	oldChannel  string // where Java up to 6.4.7 and 6.5.2 listens
}

func newNames(registryKey string) names {
	return names{registryKey: registryKey, oldChannel: registryKey + "-channel"}
}

// maxRegistryKeyLen is the longest registry key, in bytes.
const maxRegistryKeyLen = 512

func checkRegistryKey(registryKey string) error {
	switch {
	case registryKey == "" || len(registryKey) > maxRegistryKeyLen || !utf8.ValidString(registryKey):
		return fmt.Errorf("%w: registry key must be UTF-8 of 1 to %d bytes", store.ErrInvalidOption, maxRegistryKeyLen)
	case strings.HasPrefix(registryKey, sidePrefix), strings.HasPrefix(registryKey, pubsub.ProbePrefix):
		return fmt.Errorf("%w: registry keys that begin as %q does are reserved", store.ErrInvalidOption, registryKey)
	}
	return nil
}

// lock is the Redis key of a lock, and what messages about it say.
func (n names) lock(key string) string { return n.registryKey + ":" + key }

// side is a side key of the lock with this Redis key.
func side(redisKey, kind string) string {
	return sidePrefix + ":{" + redisslot.Tag(redisKey) + "}:" + redisKey + ":" + kind
}

// keysOf are the Redis keys that scripts need to give a lock to somebody, in
// their order.
func (n names) keysOf(key string) []string {
	lock := n.lock(key)
	return []string{lock, side(lock, "f"), side(lock, "x")}
}

// keyOf finds the lock's key in its Redis key. It is not ok for Redis keys that
// are no lock of this registry.
func (n names) keyOf(redisKey string) (key string, ok bool) {
	key, found := strings.CutPrefix(redisKey, n.registryKey+":")
	return key, found && redisconn.CheckKey(key) == nil
}

// channel is where releases of one Redis key are announced, besides oldChannel.
func (n names) channel(redisKey string) string { return n.oldChannel + ":" + redisKey }

// patterns match both kinds of channel of the registry and no other's.
func (n names) patterns() []string {
	base := escapeGlob(n.oldChannel)
	return []string{base, base + ":*"}
}

// match is a pattern for SCAN: the locks whose keys have the prefix.
func (n names) match(keyPrefix string) string { return escapeGlob(n.lock(keyPrefix)) + "*" }

// escapeGlob makes a pattern that matches text and nothing else.
func escapeGlob(text string) string {
	return globEscaper.Replace(text)
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
