// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"time"
)

// renewing measures the effect of a round of renewals of many leases on other locks. One process
// holds the keys; this one locks and unlocks other keys meanwhile.
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
			{name: oneServer, setting: "asynclock, no options but the TTL"},
			{name: threeNodes, setting: "the same, in a Redis Cluster of three masters"},
		},
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			stop := func() {}
			if p.name == threeNodes {
				var err error
				if w.redis, stop, err = startCluster(ctx); err != nil {
					return nil, err
				}
			}
			probe, err := openAsynclock(w)
			if err != nil {
				stop()
				return nil, err
			}
			w.ttl = size.renewedTTL
			return &renewalRounds{world: w, keys: size.renewed, probe: probe, stop: stop}, nil
		},
		cold:  true,
		limit: 30*time.Second + size.renewedTTL + time.Duration(size.renewed)*time.Millisecond/2,
	}
}

const (
	oneServer  = "one server"
	threeNodes = "Cluster of three"
)

// renewalRounds locks beside a process that holds keys, a new one each round.
type renewalRounds struct {
	world world
	keys  int
	probe *asynclockClient
	stop  func()
}

func (r *renewalRounds) round(ctx context.Context) ([]float64, error) {
	if err := r.acquaint(ctx); err != nil {
		return nil, err
	}
	process, err := again(ctx, "renewer", asynclockPeer, r.world, r.keys)
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	said, locks, err := r.watch(ctx, bufio.NewReader(out))
	if failed := process.Wait(); err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return said.rowBeside(locks), nil
}

// acquaint uses every bucket of keys, with the usual TTL. On a server that was just started, this
// waits until no earlier grant can be left. With the TTL of the keys it would wait for that TTL.
func (r *renewalRounds) acquaint(ctx context.Context) error {
	const enough = 4000 // random keys, enough to reach all 256 buckets
	h := holding{worker: r.probe, key: "bench:acquaint:"}
	locks, err := h.take(ctx, enough)
	var unlocking sync.WaitGroup
	for _, l := range locks {
		if l != nil {
			unlocking.Go(func() { _ = l.Unlock(ctx) })
		}
	}
	unlocking.Wait()
	return err
}

// watch locks from the moment when all keys are held until their process sends its report.
func (r *renewalRounds) watch(ctx context.Context, from *bufio.Reader) (said upkeep, locks []probed, err error) {
	if _, err := from.ReadString('\n'); err != nil {
		return said, nil, fmt.Errorf("renewer: %w", err)
	}
	probing, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { // ends with probing; failed is read below
		var err error
		locks, err = r.lock(probing)
		failed <- err
	}()
	line, err := from.ReadBytes('\n')
	stop()
	if err2 := <-failed; err == nil {
		err = err2
	}
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	return said, locks, err
}

// A probed lock was taken and given back in a span, and was held at one moment of it.
type probed struct {
	span
	Locked time.Time
}

// lock locks and unlocks one key after another, one each millisecond, until ctx ends.
func (r *renewalRounds) lock(ctx context.Context) (locks []probed, err error) {
	const others = 97 // keys on all nodes
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return locks, nil
		case <-tick.C:
		}
		begin := time.Now()
		l, err := r.probe.lock(context.WithoutCancel(ctx), "bench:beside:"+strconv.Itoa(n%others))
		locked := time.Now()
		if err == nil {
			err = l.Unlock(context.WithoutCancel(ctx))
		}
		if err != nil {
			return nil, err
		}
		locks = append(locks, probed{span{begin, time.Now()}, locked})
	}
}

func (r *renewalRounds) close(ctx context.Context) error {
	defer r.stop()
	return r.probe.close(ctx)
}

// rowBeside divides the locks into those with and without a renewal under way meanwhile.
func (u upkeep) rowBeside(locks []probed) []float64 {
	var between, meanwhile, alone, aloneMeanwhile []float64
	for _, l := range locks {
		took, locking := micros(l.End.Sub(l.Begin)), micros(l.Locked.Sub(l.Begin))
		if l.meets(u.Spans) {
			meanwhile, aloneMeanwhile = append(meanwhile, took), append(aloneMeanwhile, locking)
		} else {
			between, alone = append(between, took), append(alone, locking)
		}
	}
	delay := quantiles(aloneMeanwhile, 0.99)[0] - quantiles(alone, 0.99)[0]
	b, m := quantiles(between, 0.5, 0.99), quantiles(meanwhile, 0.5, 0.99)
	perRenewal, perCommand := math.NaN(), math.NaN()
	if u.Renewals > 0 {
		perRenewal, perCommand = float64(u.Keys)/float64(u.Renewals), float64(u.Keys)/float64(u.Commands)
	}
	return []float64{millis(total(u.Spans)), perRenewal, perCommand, b[0], m[0], b[1], m[1], m[1] - b[1], delay}
}

// renew does the work of the process that holds the keys of a renewal round. It reports when it has
// the keys. After a third of the TTL, in which each key is renewed once, it reports its work.
func renew(ctx context.Context, w world, keys int) error {
	k, err := newHolding(ctx, asynclockPeer, w)
	if err != nil {
		return err
	}
	leases, err := k.take(ctx, keys)
	if err != nil {
		return err
	}
	fmt.Println("held")
	said, err := k.watch(ctx, w.ttl/3)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		return err
	}
	for _, l := range leases { // otherwise the next round would find them held
		go func() { _ = l.Unlock(context.WithoutCancel(ctx)) }()
	}
	return k.worker.(*asynclockClient).close(ctx)
}
