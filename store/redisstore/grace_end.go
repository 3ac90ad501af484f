// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// What grace_end.lua answers, besides graceIsImpossible and graceIsBroken.
const (
	graceIsOver    = 0
	graceIsEnded   = 1
	graceIsAnother = 4
	graceIsUnsure  = 5
)

// EndGrace ends a grace before its time, as [store.GraceStore] says. It needs the rights of a client and those of List: +scan, and in a
// Cluster +role. It scans all keys for waiters, and has the first ones ask again. The others, and any that did not hear of it,
// ask by themselves within three seconds.
func (st *Store) EndGrace(ctx context.Context, end store.GraceEnd) (store.GraceEnded, error) {
	found, err := st.findGraces(ctx)
	s := pick(found, end)
	switch {
	case s == nil && err != nil:
		return store.GraceEnded{}, err
	case s == nil:
		return store.GraceEnded{}, fmt.Errorf("%w: %q, and %q before", store.ErrGraceChanged, end.History, end.Before)
	case s.grace.Left == 0:
		return store.GraceEnded{}, nil // it is over
	}
	if err := st.judge(ctx, s); err != nil {
		return store.GraceEnded{}, err
	}
	if !s.grace.Proven && !end.NothingLost || s.firm {
		return store.GraceEnded{}, s.unproven()
	}
	ended, failed := st.endBuckets(ctx, s, end.NothingLost)
	if ended.Ended > 0 {
		ended.Woken = st.wakeAll(ctx)
	}
	if err != nil {
		err = fmt.Errorf("some parts of the keys did not answer: %w", err)
	}
	return ended, errors.Join(failed, err)
}

// pick returns the grace that is meant, or what had it.
func pick(found []*shardGrace, end store.GraceEnd) (s *shardGrace) {
	for _, f := range found {
		if f.grace.History == end.History && f.of.history == end.Before && (s == nil || s.grace.Left == 0 || s.of.process == unknown) {
			s = f
		}
	}
	return s
}

// unproven is the error of a grace without evidence.
func (s *shardGrace) unproven() error {
	for _, f := range s.grace.Evidence {
		if f.Verdict == store.VerdictWarn {
			return fmt.Errorf("%w: %s", store.ErrGraceUnproven, f.Fact)
		}
	}
	return store.ErrGraceUnproven
}

// endBuckets ends the grace in each bucket of the server.
func (st *Store) endBuckets(ctx context.Context, s *shardGrace, nothingLost bool) (ended store.GraceEnded, err error) {
	process := s.of.process
	if nothingLost {
		process = ""
	}
	calls := borrowCalls(len(s.buckets))
	defer returnCalls(calls)
	for i, bucket := range s.buckets {
		c := &(*calls)[i]
		c.script = graceEndScript
		c.epochs6(st.settings.prefix, bucket)
		c.text(s.grace.History)
		c.text(cmp.Or(s.of.history, "-"))
		c.text(cmp.Or(process, "-"))
		c.millis(st.settings.grace)
	}
	for some := range slices.Chunk(*calls, atOnce) {
		for i, result := range st.run(ctx, some) {
			err = cmp.Or(err, st.readEnd(result, s.buckets[i], &ended))
		}
	}
	if err == nil && ended.Unproven > 0 {
		err = fmt.Errorf("%w: in %d of %d parts of the keys the history before is another one, or was had by another process", store.ErrGraceUnproven, ended.Unproven, s.grace.Parts)
	}
	return ended, err
}

// readEnd counts what grace_end.lua answers for a bucket.
func (st *Store) readEnd(result redisdriver.Result, bucket int, ended *store.GraceEnded) error {
	r := newReply(result)
	kind, left := r.between(graceIsOver, graceIsUnsure), r.millis()
	if err := r.failed(st); err != nil {
		return err
	}
	switch kind {
	case graceIsOver:
	case graceIsEnded:
		ended.Ended++
		ended.Left = max(ended.Left, left)
	case graceIsAnother:
		return fmt.Errorf("%w: the server has another one by now", store.ErrGraceChanged)
	case graceIsUnsure:
		ended.Unproven++
	default:
		return st.graceFailed(kind, bucket)
	}
	return nil
}

// wakeAll has the first waiters for all free keys ask again, and returns how many were notified. They would ask by
// themselves a little later, so whatever fails is no error.
func (st *Store) wakeAll(ctx context.Context) (woken int) {
	for names, err := range st.conn.Scan(ctx, st.settings.prefix+":{b*}:*:q") {
		if err != nil {
			break
		}
		for some := range slices.Chunk(names, atOnce) {
			woken += st.wake(ctx, some)
		}
	}
	return woken
}

// wake does so for the keys of these queues.
func (st *Store) wake(ctx context.Context, queues []string) (woken int) {
	calls := borrowCalls(len(queues))
	defer returnCalls(calls)
	some := (*calls)[:0]
	for _, name := range queues {
		if key, _, ok := parseKey(st.settings.prefix, name); ok {
			some = some[:len(some)+1]
			c := &some[len(some)-1]
			c.script = graceWakeScript
			c.lockKeys(st.settings.prefix, key, inspectKinds)
		}
	}
	for _, result := range st.run(ctx, some) {
		if n, ok := result.Integer(); ok {
			woken += int(n)
		}
	}
	return woken
}

// graceEnded logs once that somebody has ended a grace.
func (st *Store) graceEnded(history string) {
	if _, again := st.opened.LoadOrStore(history, true); !again {
		st.log.Add(slog.LevelWarn, "redisstore: keys are granted again before their time: somebody has ended the grace after a restart or a failover, and vouches that nothing was lost",
			slog.String("history", history))
	}
}
