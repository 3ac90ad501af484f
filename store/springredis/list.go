// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"errors"
	"iter"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// List scans one primary after the other and inspects what it finds, page by page. When a
// primary can't be reached, an error comes last, behind the keys of the others. Other Redis
// keys may have names like the registry's locks. They are left out unless they are strings,
// which look like locks of Java.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if err := s.usable(); err != nil {
			yield(store.Info{}, err)
			return
		}
		for names, err := range redisconn.Pages(ctx, s.store.conn, s.store.names.match(prefix)) {
			if err != nil {
				yield(store.Info{}, s.store.conn.Failure(err))
				return
			}
			if !s.show(ctx, names, yield) {
				return
			}
		}
	}
}

// show inspects the keys of a page and yields those that are held. An error is yielded last.
// It reports whether the caller wants more.
func (s *session) show(ctx context.Context, redisKeys []string, yield func(store.Info, error) bool) (more bool) {
	if err := s.usable(); err != nil {
		yield(store.Info{}, err)
		return false
	}
	var keys []string
	var calls []call
	for _, name := range redisKeys {
		if key, ok := s.store.names.keyOf(name); ok {
			keys, calls = append(keys, key), append(calls, s.inspect(key))
		}
	}
	for i, result := range s.store.run(ctx, inspectScript, calls) {
		info, err := s.readInfo(keys[i], result)
		switch {
		case errors.Is(err, store.ErrForeignData), err == nil && !info.Held: // no lock, or it ended meanwhile
			continue
		case err != nil:
			yield(store.Info{}, err)
			return false
		}
		if !yield(info, nil) {
			return false
		}
	}
	return true
}
