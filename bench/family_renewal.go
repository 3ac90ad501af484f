// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

const (
	renewedShares   = 64 // as many as the client puts in one call
	renewedTogether = "asynclock"
	renewedAlone    = "asynclock, readers alone"
)

// readRenewal is what renewals of readers cost the server.
func readRenewal(size familySizes) (c comparison) {
	c.workload = workload{
		name: "read renewal", title: fmt.Sprintf("Renewal of %d keys in one call", renewedShares),
		metrics: []metric{{Name: "server's time", Unit: "µs a key"}, {Name: "call, p50", Unit: "µs"}},
		base:    mutexName,
	}
	c.contestants = []contestant{
		{peer: peer{name: mutexName, setting: "each key locked by this client"}},
		{peer: peer{name: renewedTogether, setting: "each key read by this client and another"}},
		{peer: peer{name: renewedAlone, setting: "each key read by this client only"}},
	}
	c.targets = []target{{of: mutexName, limit: 1.3}}
	c.absent = "Redisson renews by a timer of its own, which can't be told when; ZooKeeper has one session for all keys"
	c.inGo = func(ctx context.Context, a arena, p peer) (runner, error) {
		share := reader
		if p.name == mutexName {
			share = store.Share{}
		}
		return newRenewed(ctx, a.world, c.key(p.name), share, p.name == renewedTogether, size)
	}
	return c
}

// renewed is keys that are held in the store and renewed in one call.
type renewed struct {
	session, other *storeSession
	client         rueidis.Client
	requests       []store.RenewRequest
	others         []store.RenewRequest // of the other session
	times          []float64
}

func newRenewed(ctx context.Context, w world, key string, share store.Share, beside bool, size familySizes) (*renewed, error) {
	client, err := rueidis.NewClient(clientOption(w))
	if err != nil {
		return nil, err
	}
	r := &renewed{client: client, times: make([]float64, size.passes)}
	var errs [2]error
	r.session, errs[0] = openSession(w)
	r.other, errs[1] = openSession(w)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i := range renewedShares {
		own := request(key+strconv.Itoa(i), rand.Text(), share)
		renewal, err := r.session.take(ctx, own)
		if err != nil {
			return nil, err
		}
		r.requests = append(r.requests, renewal)
		if !beside {
			continue
		}
		if renewal, err = r.other.take(ctx, request(own.Key, rand.Text(), share)); err != nil {
			return nil, err
		}
		r.others = append(r.others, renewal)
	}
	return r, nil
}

func (r *renewed) round(ctx context.Context) ([]float64, error) {
	if err := r.other.renew(ctx, r.others); err != nil {
		return nil, err
	}
	before, err := scripts(ctx, r.client)
	if err != nil {
		return nil, err
	}
	for i := range r.times {
		start := time.Now()
		if err := r.session.renew(ctx, r.requests); err != nil {
			return nil, err
		}
		r.times[i] = micros(time.Since(start))
	}
	after, err := scripts(ctx, r.client)
	used := after.since(before)
	return []float64{used.micros / float64(len(r.times)*renewedShares), quantiles(r.times, 0.5)[0]}, err
}

func (r *renewed) close(ctx context.Context) error {
	r.client.Close()
	return errors.Join(r.session.close(ctx), r.other.close(ctx))
}
