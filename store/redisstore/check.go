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

var (
	_ store.CheckedStore = (*Store)(nil)
	_ store.GraceSession = (*session)(nil)
	_ store.GraceStore   = (*Store)(nil)
)

// Check examines the servers that have locks: their version, replicas, eviction, memory, persistence and clock, and in a
// Cluster its state. It also says whether the failover grace holds locks back at present. It takes two seconds, because
// it looks at the clocks twice. Besides the rights in the package comment it can use +info|stats and
// +info|persistence, and in a Cluster +cluster|info.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	st.check(ctx, redischeck.Apart, report)
}

// check is Check with another time between the looks at the clocks.
func (st *Store) check(ctx context.Context, apart time.Duration, report func(store.Finding)) {
	if st.conn == nil {
		report(store.Finding{Check: "server", Verdict: store.VerdictFail, Fact: errZero.Error() + ".", Fix: "Make the store by Open, OpenURL or New."})
		return
	}
	d := redischeck.Deployment{
		Keys: make([]string, buckets), Cluster: st.conn.Cluster(), Guarded: st.settings.grace > 0,
		Ask: st.ask, Own: st.checkGrace, Apart: apart,
	}
	if driver, ok := st.conn.Driver.(interface{ Sentinel() bool }); ok {
		d.Sentinel = driver.Sentinel()
	}
	for bucket := range d.Keys {
		d.Keys[bucket] = string(appendEpoch(nil, st.settings.prefix, bucket)) // one of the bucket: it only says where to go
	}
	redischeck.Check(ctx, d, func(f store.Finding) {
		if f.Check == "server" && f.Verdict == store.VerdictOK {
			f.Fact += fmt.Sprintf(" The prefix is %q: locks under another one exclude nobody here.", st.settings.prefix)
		}
		report(f)
	})
}

// ask runs redischeck's script.
func (st *Store) ask(ctx context.Context, key string, args []string) (texts []string, err error) {
	c := call{script: redischeck.Script, keys: 1}
	c.text(key)
	for _, arg := range args {
		c.text(arg)
	}
	result := st.runOne(ctx, &c)
	items, err := result.List()
	if err != nil {
		return nil, st.conn.Failure(err)
	}
	for items.More() {
		text, ok := items.Text()
		if !ok {
			return nil, errReply
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// A graceCount is what the buckets say.
type graceCount struct {
	of      [graceIsBroken + 1]int // the buckets of each kind; of graceRuns those whose grace is not over
	longest time.Duration
	err     error // of a bucket that said nothing
}

// checkGrace is the check of what acquire.lua would say now of a free key of each bucket.
func (st *Store) checkGrace(ctx context.Context) store.Finding {
	found := store.Finding{Check: "grace"}
	if st.settings.grace == 0 {
		found.Verdict, found.Fact = store.VerdictNote, "The failover grace is off. A server that has forgotten a lease grants its key again at once."
		found.Fix = "Leave out WithoutFailoverGrace, unless no server can forget (docs/production.md)."
		return found
	}
	n := st.countGraces(ctx)
	switch {
	case n.of[graceIsBroken] > 0:
		found.Verdict, found.Fact = store.VerdictFail, fmt.Sprintf("The record of the server's history is damaged in %d of %d buckets, where nothing is granted.", n.of[graceIsBroken], buckets)
		found.Fix = fmt.Sprintf("DEL the Redis keys %s:{b..}:e that are not asynclock's.", st.settings.prefix)
	case n.of[graceIsImpossible] > 0:
		found.Verdict, found.Fact = store.VerdictWarn, "The server hides its replication id: there is no guard against two holders after a restart or a failover."
		found.Fix = "ACL SETUSER <user> +info|replication +info|server"
	case n.err != nil:
		found.Verdict, found.Fact = store.VerdictNote, fmt.Sprintf("Whether anything is granted is unknown: %v.", n.err)
	case n.of[graceRuns] > 0:
		found.Verdict, found.Fact = store.VerdictWarn, fmt.Sprintf("Nothing is granted for %v yet in %d of %d buckets of keys: the server was started or promoted lately, and may have forgotten leases.",
			n.longest.Round(100*time.Millisecond), n.of[graceRuns], buckets)
		found.Fix = "Wait. 'asynclock grace' shows why, and can end it. On a developer's machine use WithoutFailoverGrace."
	case n.of[graceIsToCome] > 0:
		found.Verdict, found.Fact = store.VerdictNote, fmt.Sprintf("%d of %d buckets of keys were not used since the server was started or promoted. Their first request has to wait for %v.",
			n.of[graceIsToCome], buckets, n.longest.Round(100*time.Millisecond))
	default:
		found.Fact = fmt.Sprintf("Keys are granted. After a restart or a failover nothing would be, for %v at least.", st.settings.grace)
	}
	return found
}

func (st *Store) countGraces(ctx context.Context) (n graceCount) {
	for _, b := range st.askGraces(ctx) {
		switch {
		case b.err != nil:
			n.err = cmp.Or(n.err, b.err)
			continue
		case b.kind != graceRuns || b.left > 0:
			n.of[b.kind]++
		}
		n.longest = max(n.longest, b.left)
	}
	return n
}
