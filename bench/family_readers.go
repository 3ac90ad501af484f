// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// released is how many readers leave in a round.
const released = 50

// few is the number of readers that many of them are compared to.
const few = 2

// readRelease is what it costs the server that one of many readers leaves.
func readRelease(size familySizes) (c comparison) {
	c.workload = workload{
		name: "read release", title: fmt.Sprintf("A reader leaves where %d or %d other readers stay: the server's time, by INFO commandstats", few, size.many),
		metrics: []metric{{Name: "many / few"}, {Name: "few", Unit: "µs"}, {Name: "many", Unit: "µs"}},
	}
	c.contestants = []contestant{
		{peer: peer{name: asynclockPeer.name, setting: "each reader is an owner of its own in the store, as those of different clients are"}},
		inRedisson(redissonName, "read", redissonRead+"; readers are told apart by the ids of threads"),
	}
	c.targets = []target{{limit: 1.5}}
	c.absent = "ZooKeeper does not say what its time goes to"
	c.inGo = func(_ context.Context, a arena, p peer) (runner, error) {
		s, err := openSession(a.world)
		if err != nil {
			return nil, err
		}
		return releases(a.world, func(beside int) readerSet { return &ownReaders{session: s, key: c.key(p.name) + strconv.Itoa(beside)} }, size, s.close)
	}
	c.inJava = func(ctx context.Context, a arena, recipe, key string) (runner, error) {
		peers := make(map[int]*javaPeer)
		for _, beside := range []int{few, size.many} {
			p, err := openJava(ctx, a.java, a.redis, a.zooKeeper, recipe, key+strconv.Itoa(beside))
			if err != nil {
				return nil, err
			}
			peers[beside] = p
		}
		return releases(a.world, func(beside int) readerSet { return javaReaders{peers[beside]} }, size, func(ctx context.Context) error {
			return errors.Join(peers[few].close(ctx), peers[size.many].close(ctx))
		})
	}
	return c
}

// A readerSet is readers of a key that are counted from 0.
type readerSet interface {
	take(ctx context.Context, from, to int) error
	give(ctx context.Context, from, to int) error
}

type javaReaders struct{ *javaPeer }

func (r javaReaders) take(ctx context.Context, from, to int) error {
	_, err := r.ask(ctx, "read", from, to)
	return err
}

func (r javaReaders) give(ctx context.Context, from, to int) error {
	_, err := r.ask(ctx, "endread", from, to)
	return err
}

// releases compares what releases cost.
func releases(w world, readers func(beside int) readerSet, size familySizes, end func(context.Context) error) (runner, error) {
	client, err := rueidis.NewClient(clientOption(w))
	if err != nil {
		return nil, err
	}
	return steps{func(ctx context.Context) ([]float64, error) {
		least, err := releaseTime(ctx, client, readers(few), few)
		if err != nil {
			return nil, err
		}
		most, err := releaseTime(ctx, client, readers(size.many), size.many)
		return []float64{most / least, least, most}, err
	}, func(ctx context.Context) error {
		client.Close()
		return end(ctx)
	}}, nil
}

// releaseTime has readers come, some more of them come and leave, and the others leave. Where a
// renewal came in between, it is tried again.
func releaseTime(ctx context.Context, client rueidis.Client, readers readerSet, beside int) (micros float64, err error) {
	if err := readers.take(ctx, 0, beside); err != nil {
		return 0, err
	}
	var used scriptTime
	const tries = 5
	for try := 0; try < tries && used.calls != released; try++ {
		if err := readers.take(ctx, beside, beside+released); err != nil {
			return 0, err
		}
		before, err := scripts(ctx, client)
		if err != nil {
			return 0, err
		}
		if err := readers.give(ctx, beside, beside+released); err != nil {
			return 0, err
		}
		after, err := scripts(ctx, client)
		if err != nil {
			return 0, err
		}
		used = after.since(before)
	}
	if used.calls != released {
		return 0, fmt.Errorf("%d readers left by %v calls of scripts, in each of %d tries", released, used.calls, tries)
	}
	return used.micros / released, readers.give(ctx, 0, beside)
}

// ownReaders are readers that are owners of their own, by their numbers.
type ownReaders struct {
	session *storeSession
	key     string
	taken   map[int]store.RenewRequest
}

func (r *ownReaders) take(ctx context.Context, from, to int) error {
	if r.taken == nil {
		r.taken = make(map[int]store.RenewRequest)
	}
	for n := from; n < to; n++ {
		one, err := r.session.take(ctx, request(r.key, rand.Text(), reader))
		if err != nil {
			return err
		}
		r.taken[n] = one
	}
	return nil
}

func (r *ownReaders) give(ctx context.Context, from, to int) error {
	for n := from; n < to; n++ {
		one := r.taken[n]
		delete(r.taken, n)
		reply := r.session.Release(ctx, []store.ReleaseRequest{{Key: r.key, Owner: one.Owner, Token: one.Token, Clean: true}})[0]
		if reply.Err != nil {
			return reply.Err
		}
	}
	return nil
}
