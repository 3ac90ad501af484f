// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// floorPeer sends what every lock must send: one command that takes the key if it is free, and one
// script that deletes it if it is still ours.
var floorPeer = peer{
	name:    "floor",
	setting: "rueidis, set up as asynclock sets it up: SET NX PX, then a compare-and-delete script by EVALSHA; nobody waits, nothing is renewed",
	open:    func(_ context.Context, w world) (client, error) { return openFloor(clientOption(w), w.ttl) },
	is:      traits{floor: true},
}

// lowestFloorPeer is the floor of a caller that is alone: rueidis then writes and reads in the
// caller's goroutine. With many callers it pipelines by itself.
var lowestFloorPeer = peer{
	name:    "lowest floor",
	setting: "the same, by rueidis as it is unless it is told to pipeline: a caller that is alone writes and reads by itself",
	open: func(_ context.Context, w world) (client, error) {
		option := clientOption(w)
		option.AlwaysPipelining, option.PipelineMultiplex = false, 0
		return openFloor(option, w.ttl)
	},
	is: traits{floor: true, lowest: true},
}

func openFloor(option rueidis.ClientOption, ttl time.Duration) (client, error) {
	c, err := rueidis.NewClient(option)
	return &floorClient{client: c, ttl: ttl}, err
}

type floorClient struct {
	client rueidis.Client
	ttl    time.Duration
	owners atomic.Int64
}

func (f *floorClient) worker(context.Context) (worker, error) { return f, nil }

func (f *floorClient) close(context.Context) error {
	f.client.Close()
	return nil
}

var errTaken = errors.New("the floor found its key taken")

func (f *floorClient) lock(ctx context.Context, key string) (held, error) {
	owner := strconv.FormatInt(f.owners.Add(1), 10)
	err := f.client.Do(ctx, f.client.B().Set().Key(key).Value(owner).Nx().PxMilliseconds(f.ttl.Milliseconds()).Build()).Error()
	if rueidis.IsRedisNil(err) {
		err = errTaken
	}
	return &floorHeld{f.client, key, owner}, err
}

type floorHeld struct {
	client     rueidis.Client
	key, owner string
}

var floorRelease = rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

func (h *floorHeld) Unlock(ctx context.Context) error {
	return floorRelease.Exec(ctx, h.client, []string{h.key}, []string{h.owner}).Error()
}

// clientOption returns the options with which redisstore.Open connects.
func clientOption(w world) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{w.redis},
		DialCtxFn:         w.rueidisDial(),
		DisableCache:      true,
		AlwaysPipelining:  true,
		PipelineMultiplex: -1,
	}
}
