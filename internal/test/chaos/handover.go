// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// failOver makes the sentinel promote the replica. Until the old primary has
// been told, it goes on acknowledging what is lost then.
func (b *blow) failOver() error {
	ctx := context.WithoutCancel(b.ctx)
	old, err := b.node(ctx)
	if err != nil {
		return err
	}
	b.hit(old.Addr)
	if err := b.store.FailOver(ctx); err != nil {
		return err
	}
	successor := b.store.Nodes[0]
	if successor == old {
		successor = b.store.Nodes[1]
	}
	// The sentinel ends connections to the old primary, ours too.
	return servers.Await(ctx, "the old primary", func(ctx context.Context) error { return old.Follows(ctx, successor) })
}

// takeOver makes a replica of a cluster the master of its slots: in agreement
// with the old one, which then loses nothing, or on its own.
func (b *blow) takeOver(how ...string) error {
	ctx := context.WithoutCancel(b.ctx)
	replicas, err := b.store.withRole(ctx, "slave")
	if err != nil {
		return err
	}
	if len(replicas) == 0 {
		return errors.New("there is no replica")
	}
	chosen := replicas[b.rand.IntN(len(replicas))]
	b.hit(chosen.Addr)
	if err := b.store.inStep(ctx, chosen); err != nil {
		return err
	}
	if err := b.store.timeOut(ctx, 3*time.Second); err != nil {
		return err
	}
	err = b.store.promote(ctx, chosen, how...)
	return errors.Join(err, b.store.timeOut(ctx, nothingFailsOverByItself))
}

// inStep waits until a replica has its primary's data, whoever that is.
func (s *site) inStep(ctx context.Context, replica *servers.Redis) error {
	return servers.Await(ctx, replica.Name, func(ctx context.Context) error {
		facts, err := replica.Facts(ctx, "INFO", "replication")
		if err == nil && facts["master_link_status"] != "up" {
			err = errors.New("it is not in step")
		}
		return err
	})
}

// promote asks a replica to take over, until it and the old master have changed places.
func (s *site) promote(ctx context.Context, chosen *servers.Redis, how ...string) error {
	var asked time.Time
	err := servers.Await(ctx, chosen.Name, func(ctx context.Context) error {
		primaries, err := s.primaries(ctx)
		if err != nil {
			return err
		}
		promoted := slices.Contains(primaries, chosen)
		if promoted && len(primaries) == len(s.Nodes)/2 {
			return nil
		}
		if !promoted && time.Since(asked) > 6*time.Second { // it gives up after 5
			asked = time.Now()
			if err := chosen.Do(ctx, append([]string{"CLUSTER", "FAILOVER"}, how...)...); err != nil {
				return err
			}
		}
		return errors.New("it has not taken over")
	})
	if err != nil {
		return err
	}
	return s.Agree(ctx)
}

// timeOut sets the time after which a cluster's nodes give each other up. Masters vote
// for a shard's replica once in twice that time.
func (s *site) timeOut(ctx context.Context, d time.Duration) error {
	ms := strconv.FormatInt(d.Milliseconds(), 10)
	for _, node := range s.Nodes {
		if err := node.Do(ctx, "CONFIG", "SET", "cluster-node-timeout", ms); err != nil {
			return err
		}
	}
	return nil
}

// moveSlot moves the slot of one lock from its master to another.
func (b *blow) moveSlot() error {
	ctx := context.WithoutCancel(b.ctx)
	key, pause := b.Keys[b.rand.IntN(len(b.Keys))], b.between(0, 50)
	b.hit("slot of " + key)
	names, err := b.store.names(ctx)
	if err != nil {
		return err
	}
	for from, some := range names {
		for _, name := range some {
			if strings.Contains(name, ":"+key+":") {
				return b.moveSlotOf(ctx, name, from, pause)
			}
		}
	}
	return nil // nobody uses it just now
}

// moveSlotOf pauses when the slot has its keys in two places.
func (b *blow) moveSlotOf(ctx context.Context, name string, from *servers.Redis, pause time.Duration) error {
	primaries, err := b.store.primaries(ctx)
	if err != nil {
		return err
	}
	to := primaries[(slices.Index(primaries, from)+1+b.rand.IntN(len(primaries)-1))%len(primaries)]
	slot, err := from.Text(ctx, "CLUSTER", "KEYSLOT", name)
	if err != nil {
		return err
	}
	return b.store.MoveSlot(ctx, servers.Move{Slot: slot, From: from, To: to, Midway: func() { b.wait(pause) }})
}
