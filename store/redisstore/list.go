// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"iter"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// scanPage is how many of its keys, of all kinds, a server looks at per SCAN.
const scanPage = 500

// List scans one primary after the other and inspects what it finds, page by
// page. A key that moves to another node meanwhile may be missed. When a primary can't
// be reached, an error comes last, behind the keys of the others.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[asynclock.Info, error] {
	return func(yield func(asynclock.Info, error) bool) {
		err := s.usable()
		var nodes []rueidis.Client
		if err == nil {
			nodes, err = s.store.primaries(ctx)
		}
		l := listing{session: s, pattern: matchKeys(s.store.settings.prefix, prefix), yield: yield, seen: make(map[string]bool)}
		for _, node := range nodes {
			if l.stopped {
				return
			}
			if failed := l.scan(ctx, node); err == nil {
				err = failed
			}
		}
		if err != nil && !l.stopped {
			yield(asynclock.Info{}, err)
		}
	}
}

func (st *Store) primaries(ctx context.Context) ([]rueidis.Client, error) {
	nodes, err := redisconn.Primaries(ctx, st.commands)
	if err != nil {
		err = st.failure(err)
	}
	return nodes, err
}

// A listing is one run of List.
type listing struct {
	session *session
	pattern string
	yield   func(asynclock.Info, error) bool
	stopped bool // yield wants no more
	// seen are keys with waiters that were yielded: they have a queue besides a
	// record, so SCAN names them twice.
	seen map[string]bool
}

// scan lists the keys of one node.
func (l *listing) scan(ctx context.Context, node rueidis.Client) error {
	var cursor uint64
	for {
		command := node.B().Scan().Cursor(cursor).Match(l.pattern).Count(scanPage).Build()
		page, err := node.Do(ctx, command).AsScanEntry()
		if err != nil {
			return l.session.store.failure(err)
		}
		if err := l.show(ctx, page.Elements); err != nil || l.stopped {
			return err
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}

// show inspects what a page names and yields what is held or waited for.
func (l *listing) show(ctx context.Context, redisKeys []string) error {
	st := l.session.store
	var keys []string
	inPage := make(map[string]bool, len(redisKeys))
	for _, name := range redisKeys {
		key, _, ok := parseKey(st.settings.prefix, name)
		if ok && !inPage[key] && !l.seen[key] {
			inPage[key] = true
			keys = append(keys, key)
		}
	}
	if err := l.session.usable(); err != nil || len(keys) == 0 {
		return err
	}

	calls := borrowCalls(len(keys))
	defer returnCalls(calls)
	for i, key := range keys {
		(*calls)[i].inspect(st.settings.prefix, key, 0)
	}
	for i, result := range st.run(ctx, *calls) {
		info, err := st.info(keys[i], result)
		if err != nil {
			return err
		}
		if !info.Held && info.Waiters == 0 { // it ended meanwhile
			continue
		}
		if info.Waiters > 0 {
			l.seen[info.Key] = true
		}
		if !l.yield(info, nil) {
			l.stopped = true
			return nil
		}
	}
	return nil
}
