// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// List scans one primary after the other and inspects what it finds, page by
// page. A key that moves to another node meanwhile may be missed. Foreign data under a key is an error
// about that key. When a primary can't be reached, an error comes last, behind the keys of the others.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if err := s.usable(); err != nil {
			yield(store.Info{}, err)
			return
		}
		l := listing{session: s, yield: yield, seen: make(map[string]bool)}
		for names, err := range s.store.conn.Scan(ctx, matchKeys(s.store.settings.prefix, prefix)) {
			if err != nil {
				yield(store.Info{}, s.store.conn.Failure(err))
				return
			}
			if !l.show(ctx, names) {
				return
			}
		}
	}
}

// A listing is one run of List.
type listing struct {
	session *session
	yield   func(store.Info, error) bool
	// seen are keys with waiters that were yielded. SCAN names them twice, because they have
	// a queue and a record.
	seen map[string]bool
}

// show inspects the keys of a page and yields those that are held or waited for, and those that can't be
// described. It reports whether to go on.
func (l *listing) show(ctx context.Context, redisKeys []string) (more bool) {
	if err := l.session.usable(); err != nil {
		l.yield(store.Info{}, err)
		return false
	}
	keys := l.keysOf(ctx, redisKeys)
	if len(keys) == 0 {
		return true
	}

	infos, errs := l.infos(ctx, keys)
	for i, info := range infos {
		if errs[i] != nil && !errors.Is(errs[i], store.ErrForeignData) {
			l.yield(store.Info{}, errs[i])
			return false
		}
		if info.Waiters > 0 {
			l.seen[info.Key] = true
		}
		if !l.yield(info, errs[i]) {
			return false
		}
	}
	return true
}

// infos describes those of the keys that are held or waited for. The error of a key comes with an Info that has
// nothing but its name.
func (l *listing) infos(ctx context.Context, keys []string) (infos []store.Info, errs []error) {
	st := l.session.store
	for i, result := range l.inspect(ctx, keys) {
		info, after, err := st.info(keys[i], result)
		for err == nil && after > 0 {
			after, err = l.session.moreWaiters(ctx, &info, page{after: after})
		}
		if err != nil || info.Held || info.Waiters > 0 { // otherwise it ended meanwhile
			info.Key = keys[i]
			infos, errs = append(infos, info), append(errs, err)
		}
	}
	for i, err := range st.addLimits(ctx, infos) {
		if errs[i] = cmp.Or(errs[i], err); errs[i] != nil {
			infos[i] = store.Info{Key: infos[i].Key}
		}
	}
	return infos, errs
}

// inspect inspects keys, all at once, and then once more those that are shared.
func (l *listing) inspect(ctx context.Context, keys []string) []redisdriver.Result {
	results := l.run(ctx, keys, false)
	var shared []string
	var at []int
	for i, result := range results {
		if isWide(result) {
			shared, at = append(shared, keys[i]), append(at, i)
		}
	}
	for n, result := range l.run(ctx, shared, true) {
		results[at[n]] = result
	}
	return results
}

// run is a run of inspect.lua for each key.
func (l *listing) run(ctx context.Context, keys []string, wide bool) []redisdriver.Result {
	calls := borrowCalls(len(keys))
	defer returnCalls(calls)
	for i, key := range keys {
		(*calls)[i].inspect(l.session.store.settings.prefix, key, page{}, wide)
	}
	return l.session.store.run(ctx, *calls)
}

// keysOf returns the keys of a page that are new, except those that nobody has used since they were
// left vacant. There may be many of these, and to inspect them all would take the server long.
func (l *listing) keysOf(ctx context.Context, redisKeys []string) (keys []string) {
	st := l.session.store
	inPage := make(map[string]bool, len(redisKeys))
	var locks, names []string // of keys that may be vacant
	for _, name := range redisKeys {
		key, kind, ok := parseKey(st.settings.prefix, name)
		switch {
		case !ok || l.seen[key] || inPage[key]:
		case kind == 'l':
			locks, names = append(locks, key), append(names, name)
		default:
			inPage[key] = true
			keys = append(keys, key)
		}
	}
	for i, result := range st.conn.GetAll(ctx, names) {
		if value, ok := result.Text(); ok && isVacancy(value) || inPage[locks[i]] {
			continue
		}
		inPage[locks[i]] = true
		keys = append(keys, locks[i])
	}
	return keys
}
