// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// shown is how many waiters, and how many of those who share a key, Inspect describes.
const shown = 10

// inspectKinds are the Redis keys of a lock that inspect.lua needs, in its
// order.
const inspectKinds = "lqw"

// Inspect asks the primary, and describes the first 10 waiters and the first 10 who share
// the key. It counts 250 waiters in a step. If more than 250 holders of permits have died since the last request for
// the key, what the others of them had is counted as out.
func (s *session) Inspect(ctx context.Context, key string) (store.Info, error) {
	if err := s.usable(); err != nil {
		return store.Info{}, err
	}
	if err := redisconn.CheckKey(key); err != nil {
		return store.Info{}, err
	}
	result := s.ask(ctx, key, func(c *call, wide bool) { c.inspect(s.store.settings.prefix, key, page{shown: shown}, wide) })
	info, after, err := s.store.info(key, result)
	for err == nil && after > 0 {
		after, err = s.moreWaiters(ctx, &info, page{after: after, shown: shown - int64(len(info.Queue))})
	}
	if err != nil {
		return store.Info{}, err
	}
	infos := []store.Info{info}
	if err := s.store.addLimits(ctx, infos)[0]; err != nil {
		return store.Info{}, err
	}
	return infos[0], nil
}

// ask runs a script about a key that may be shared, which is narrow at first.
func (s *session) ask(ctx context.Context, key string, put func(c *call, wide bool)) redisdriver.Result {
	var c call
	wide := s.shared.noted(key)
	put(&c, wide)
	result := s.store.runOne(ctx, &c)
	if wide || !isWide(result) {
		return result
	}
	s.shared.note(key, true)
	var again call
	put(&again, true)
	return s.store.runOne(ctx, &again)
}

// A page is the part of a queue that one run of inspect.lua reads.
type page struct {
	after int64 // the ticket behind which it begins
	shown int64 // how many waiters, and how many of those who share the key, it describes
}

// moreWaiters adds the next page of waiters to what is said of a key. It returns behind which ticket there are others.
func (s *session) moreWaiters(ctx context.Context, info *store.Info, p page) (after int64, err error) {
	result := s.ask(ctx, info.Key, func(c *call, wide bool) { c.inspect(s.store.settings.prefix, info.Key, p, wide) })
	more, after, err := s.store.info(info.Key, result)
	info.Waiters += more.Waiters
	info.Queue = append(info.Queue, more.Queue...)
	return after, err
}

// inspect is a run of inspect.lua, which describes its keys and arguments.
func (c *call) inspect(prefix, key string, p page, wide bool) {
	c.script = inspectScript
	c.lockKeys(prefix, key, inspectKinds)
	if wide {
		c.lockKeys(prefix, key, memberKinds)
	}
	c.number(p.shown)
	c.number(p.shown)
	c.number(p.after)
}

// info reads what inspect.lua answers, and behind which ticket there are other waiters, or 0.
func (st *Store) info(key string, result redisdriver.Result) (info store.Info, after int64, err error) {
	r := newReply(result)
	info, after = r.info(key)
	if err := r.failed(st); err != nil {
		return store.Info{}, 0, err
	}
	return info, after, nil
}

// Force takes a key from all who share it. It also takes a key that is held back after its holder has released it. The record then still
// has that holder's token.
//
// The holder's record has the last token that the holder wrote back, which is what Inspect shows. A
// token that the client has given out since, or before, names no holding here.
//
// The next token is larger than any that the old holder could still use inside its client
// before its TTL ends. So tokens are ahead of the server's clock for the rest of that TTL, 24
// h at most, and follow each other without gaps. In that time clients don't hand the key on
// among their own waiters, and a release to a waiter takes the server a little longer. If the
// server loses its data in that time, tokens go back to its clock.
func (s *session) Force(ctx context.Context, key string, token int64) (bool, error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	if err := redisconn.CheckKey(key); err != nil {
		return false, err
	}
	result := s.ask(ctx, key, func(c *call, wide bool) {
		c.script = forceScript
		c.allKeys(s.store.settings.prefix, key, wide)
		c.number(token)
		c.guard(s.store.guard(key))
	})
	if held, ok := result.Integer(); ok {
		return held == 1, nil
	}
	r := newReply(result)
	info := r.otherHolder(key)
	if err := r.failed(s.store); err != nil {
		return false, err
	}
	return false, &store.OtherHolderError{Info: info}
}
