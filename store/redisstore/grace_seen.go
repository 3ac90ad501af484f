// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/redischeck"
	"github.com/asynclock/asynclock-go/store"
)

// Graces returns the graces of all servers of the deployment, as [store.GraceStore] says. To find evidence it asks the
// replicas of a promoted server. A store of [Open] connects to them for that, at the addresses that the server knows. It waits
// five seconds for them. It is [store.ErrUnsupported] with [WithoutFailoverGrace], and [store.ErrDenied] where the server
// hides its history.
func (st *Store) Graces(ctx context.Context) ([]store.Grace, error) {
	found, err := st.findGraces(ctx)
	var graces []store.Grace
	for _, s := range found {
		if s.grace.Left == 0 {
			continue
		}
		if failed := st.judge(ctx, s); failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		graces = append(graces, s.grace)
	}
	return graces, err
}

// A shardGrace is the grace of a server: of the buckets that had the same history before.
type shardGrace struct {
	grace   store.Grace
	of      origin
	buckets []int
	copies  redischeck.Facts
	used    int64     // when the history before was last used (ms)
	start   time.Time // the second in which its process was started
	firm    bool      // nobody can end it
}

// An origin is a history, and the process that had it. There was none if both are empty.
type origin struct{ history, process string }

// unknown is the process if not even the history is known: the script that noticed the next one wrote no cause.
const unknown = "?"

// findGraces asks all buckets, and puts together those of a server that have the same origin. Those without a grace are
// together, too. The error is about buckets that are not among those.
func (st *Store) findGraces(ctx context.Context) (found []*shardGrace, err error) {
	switch {
	case st.conn == nil:
		return nil, errZero
	case st.settings.grace == 0:
		return nil, fmt.Errorf("%w: there is no grace, by WithoutFailoverGrace", store.ErrUnsupported)
	}
	type part struct {
		of      origin // without the process, which is the same
		history string
		granted bool
	}
	parts := make(map[part]*shardGrace)
	all := st.askGraces(ctx)
	for i := range all {
		b := &all[i]
		if failed := cmp.Or(b.err, st.graceFailed(b.kind, b.bucket)); failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		copies := redischeck.ParseFacts(b.info)
		of := b.origin(copies["master_replid"])
		at := part{of: of, history: copies["master_replid"], granted: b.left <= 0}
		if of.process != unknown {
			at.of.process = ""
		}
		if parts[at] == nil {
			parts[at] = &shardGrace{copies: copies, of: of, grace: store.Grace{History: at.history, Before: of.history}}
			found = append(found, parts[at])
		}
		parts[at].of.process = cmp.Or(parts[at].of.process, of.process)
		parts[at].add(b)
	}
	return joinUnused(found), err
}

// joinUnused puts buckets that have no epoch to those of the same server that have one: they were not used before.
func joinUnused(found []*shardGrace) (joined []*shardGrace) {
	for _, s := range found {
		var other *shardGrace
		for _, f := range found {
			if f.grace.History == s.grace.History && f.grace.Left > 0 && f.of.history != "" && (other == nil || f.grace.Parts > other.grace.Parts) {
				other = f
			}
		}
		if s.of != (origin{}) || s.grace.Left == 0 || other == nil {
			joined = append(joined, s)
			continue
		}
		ours, more := &other.grace, &s.grace
		other.buckets = append(other.buckets, s.buckets...)
		ours.Parts, ours.Waiting, ours.Left = ours.Parts+more.Parts, ours.Waiting+more.Waiting, max(ours.Left, more.Left)
		if more.Until.After(ours.Until) {
			ours.Until = more.Until
		}
	}
	return joined
}

// origin returns what a bucket had before the server's history.
func (b *bucketGrace) origin(history string) (of origin) {
	switch {
	case b.kind == graceIsToCome && b.cause.id == b.epoch.id:
		return origin{b.epoch.id, b.cause.run}
	case b.kind == graceIsToCome:
		return origin{history: b.epoch.id}
	case b.cause.id == history && b.cause.ready == b.epoch.ready && b.cause.before != unknown:
		return origin{b.cause.before, b.cause.ran}
	case b.epoch.id == "":
		return origin{}
	}
	return origin{process: unknown}
}

// add counts a bucket.
func (s *shardGrace) add(b *bucketGrace) {
	s.buckets = append(s.buckets, b.bucket)
	g := &s.grace
	g.Parts++
	if b.left <= 0 {
		return
	}
	used := b.epoch.noted
	if b.kind == graceIsToCome {
		g.Unused++
	} else {
		g.Waiting++
		used = b.cause.used
		if until := b.clock.Add(b.left); until.After(g.Until) {
			g.Until = until
		}
		if since := time.UnixMilli(b.cause.since); b.cause.id == g.History && (g.Since.IsZero() || since.Before(g.Since)) {
			g.Since = since
		}
	}
	s.used = max(s.used, used)
	g.Left = max(g.Left, b.left)
	g.Longest = max(g.Longest, b.epoch.longest, b.epoch.older)
}

// why says why the grace began.
func (s *shardGrace) why() store.GraceReason {
	switch {
	case s.of.history == s.grace.History:
		return store.GraceClock
	case s.of.process == unknown:
		return store.GraceUnknown
	case s.of.history == "":
		return store.GraceStarted
	case s.of.history == s.copies["master_replid2"]:
		return store.GracePromoted // or started from a copy of its own data, which looks the same
	case s.used < s.start.Add(time.Second).UnixMilli():
		return store.GraceStarted
	}
	return store.GraceMoved
}
