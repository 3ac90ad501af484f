// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// These are the peers of renewing.
const (
	oneServer  = "one server"
	threeNodes = "Cluster of three"
)

// renewing measures the effect of a round of renewals of many leases on other locks. One process
// holds the keys, a new one each round; this one locks and unlocks other keys meanwhile.
func renewing(size sizes) workload {
	return workload{
		name:  "renewal round",
		title: fmt.Sprintf("Another client's Lock and Unlock while the leases of %d keys are renewed, TTL %v", size.renewed, size.renewedTTL),
		metrics: []metric{
			{Name: "round", Unit: "ms"},
			{"keys per renewal", "", true},
			{"keys per command", "", true},
			{Name: "lock p50 between", Unit: "µs"},
			{Name: "p50 meanwhile", Unit: "µs"},
			{Name: "p99 between", Unit: "µs"},
			{Name: "p99 meanwhile", Unit: "µs"},
			{Name: "delay at p99", Unit: "µs"},
			{Name: "of Lock alone", Unit: "µs"},
		},
		rounds: size.heldRounds,
		base:   oneServer,
		peers: []peer{
			{name: oneServer, setting: "asynclock, no options but the TTL", is: traits{own: true}},
			{name: threeNodes, setting: "the same, in a Redis Cluster of three masters", is: traits{own: true}},
		},
		prepare: func(ctx context.Context, s *stage) round {
			if s.peer.name == threeNodes {
				s.redis = startCluster(ctx, &s.ends)
			}
			probe := openAsynclock(s.world)
			s.after(probe.close)
			s.ttl = size.renewedTTL
			return func(ctx context.Context) []float64 {
				acquaint(ctx, probe.lock)
				return s.beside(ctx, size.renewed, probe.lock)
			}
		},
		cold:  true,
		limit: 30*time.Second + size.renewedTTL + time.Duration(size.renewed)*time.Millisecond/2,
	}
}

// acquaint uses every bucket of keys, with the usual TTL. On a server that was just started, this
// waits until no earlier grant can be left. With the TTL of the keys it would wait for that TTL.
func acquaint(ctx context.Context, lock locker) {
	const enough = 4000 // random keys, enough to reach all 256 buckets
	h := holding{lock: lock, key: "bench:acquaint:"}
	leases := h.take(ctx, enough)
	together(enough, func(i int) { check(leases[i].Unlock(ctx)) })
}

// besideKey is one of some keys on all nodes.
func besideKey(n int) string { return "bench:beside:" + strconv.Itoa(n%97) }

// beside locks from the moment when all keys are held until their process sends its report.
func (s *stage) beside(ctx context.Context, keys int, lock locker) (values []float64) {
	s.visit(ctx, "renewer", asynclockPeer, keys, func(c *child) {
		var ready string
		c.hear(&ready)
		probing, stop := context.WithCancel(ctx)
		defer stop()
		var locks []probed
		wait := beside(func() { locks = probe(probing, lock, time.Millisecond, besideKey) })
		var said upkeep
		err := catch(func() { c.hear(&said) })
		stop()
		wait()
		check(err)
		values = said.rowBeside(locks)
	})
	return values
}

// rowBeside compares the locks without a renewal under way meanwhile, and those with one.
func (u upkeep) rowBeside(locks []probed) []float64 {
	between, meanwhile := split(locks, u.Spans)
	b, m := quantiles(each(between, probed.pair), 0.5, 0.99), quantiles(each(meanwhile, probed.pair), 0.5, 0.99)
	delay := quantiles(each(meanwhile, probed.alone), 0.99)[0] - quantiles(each(between, probed.alone), 0.99)[0]
	perRenewal, perCommand := notMeasured, notMeasured
	if u.Renewals > 0 {
		perRenewal, perCommand = float64(u.Keys)/float64(u.Renewals), float64(u.Keys)/float64(u.Commands)
	}
	return []float64{millis(total(u.Spans)), perRenewal, perCommand, b[0], m[0], b[1], m[1], m[1] - b[1], delay}
}

// renew does the work of the process that holds the keys of a renewal round. It reports when it has
// the keys. After a third of the TTL, in which each key is renewed once, it reports its work.
func renew(ctx context.Context, s *stage, keys int, _ *json.Decoder, out *json.Encoder) {
	k := s.holding()
	leases := k.take(ctx, keys)
	check(out.Encode("held"))
	check(out.Encode(k.watch(ctx, s.ttl/3)))
	for _, l := range leases { // otherwise the next round would find them held
		go func() { _ = l.Unlock(context.WithoutCancel(ctx)) }() // ends with the client
	}
}
