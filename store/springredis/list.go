// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"errors"
	"iter"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// scanPage is how many of its keys, of all kinds, a server looks at per SCAN.
const scanPage = 500

// List scans one primary after the other and inspects what it finds, page by
// page. When a primary can't be reached, an error comes last, behind the keys of the
// others. Other things whose names begin as the registry's locks do are left out
// where they are no strings; strings look like locks of Java.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[asynclock.Info, error] {
	return func(yield func(asynclock.Info, error) bool) {
		err := s.usable()
		var nodes []rueidis.Client
		if err == nil {
			nodes, err = s.primaries(ctx)
		}
		more := true
		for _, node := range nodes {
			if !more {
				return
			}
			var failed error
			if more, failed = s.scan(ctx, node, s.store.names.match(prefix), yield); err == nil {
				err = failed
			}
		}
		if err != nil && more {
			yield(asynclock.Info{}, err)
		}
	}
}

// scan lists the locks of one node. It reports whether the caller wants more.
func (s *session) scan(ctx context.Context, node rueidis.Client, pattern string, yield func(asynclock.Info, error) bool) (more bool, err error) {
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(scanPage).Build()).AsScanEntry()
		if err != nil {
			return true, s.store.failure(err)
		}
		more, err := s.show(ctx, page.Elements, yield)
		if cursor = page.Cursor; cursor == 0 || !more || err != nil {
			return more, err
		}
	}
}

func (s *session) primaries(ctx context.Context) ([]rueidis.Client, error) {
	nodes, err := redisconn.Primaries(ctx, s.store.commands)
	if err != nil {
		err = s.store.failure(err)
	}
	return nodes, err
}

// show inspects what a page names and yields what is held. It reports the same.
func (s *session) show(ctx context.Context, redisKeys []string, yield func(asynclock.Info, error) bool) (more bool, err error) {
	if err := s.usable(); err != nil {
		return true, err
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
		case errors.Is(err, asynclock.ErrForeignData), err == nil && !info.Held: // no lock, or it ended meanwhile
			continue
		case err != nil:
			return true, err
		}
		if !yield(info, nil) {
			return false, nil
		}
	}
	return true, nil
}
