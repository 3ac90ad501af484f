// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// Inspect asks the primary. Waiters are never known, Java's holders only by the
// first digits of their registry's id.
func (s *session) Inspect(ctx context.Context, key string) (store.Info, error) {
	if err := s.usable(); err != nil {
		return store.Info{}, err
	}
	if err := redisconn.CheckKey(key); err != nil {
		return store.Info{}, err
	}
	return s.readInfo(key, s.store.runOne(ctx, inspectScript, s.inspect(key)))
}

func (s *session) inspect(key string) call {
	return call{keys: s.store.names.keysOf(key)[:1]}
}

// readInfo reads what inspect.lua answers.
func (s *session) readInfo(key string, result rueidis.RedisResult) (store.Info, error) {
	info := store.Info{Key: key}
	r := newReply(result)
	status := r.status()
	switch {
	case r.err != nil:
	case status == replyHeld:
		r.held(&info)
	case status != replyFree && status != replyForeign:
		r.err = errReply
	}
	if err := r.failed(s.store, status); err != nil {
		return store.Info{}, err
	}
	return info, nil
}

// Force takes the key from Java, too, where unlock then throws a
// ConcurrentModificationException. A holder in Java has no token, so that only token 0 takes the key
// from it. Holders in Go are notified in mode [PubSubLock]. Other
// holders in Go notice by their next renewal.
//
// The next token is larger than any that a holder in Go could still use inside its client
// before its TTL ends. So tokens may be ahead of the server's clock for the rest of that TTL,
// 24 h at most. If the server loses its data in that time, they go back to its clock.
//
// Side keys of another type, or with values that are none of theirs, are replaced, also if nobody
// holds the key. The next token is then larger than the holder's and the clock.
func (s *session) Force(ctx context.Context, key string, token int64) (bool, error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	if err := redisconn.CheckKey(key); err != nil {
		return false, err
	}
	names := s.store.names
	keys := names.keysOf(key)
	found, err := s.readDeletion(key, s.store.runOne(ctx, forceScript, call{
		keys: keys,
		args: []string{
			s.store.deletion.from(), names.channel(keys[0]), names.oldChannel, forcedPrefix, strconv.FormatInt(token, 10),
		},
	}))
	return err == nil && found == replyGranted, err
}
