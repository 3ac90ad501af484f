// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// failOver makes the sentinel promote the replica. Until the old primary has
// been told, it goes on acknowledging what is lost then.
func (b *blow) failOver() error {
	ctx := context.WithoutCancel(b.ctx)
	old, err := b.node(ctx)
	if err != nil {
		return err
	}
	b.hit(old.addr())
	err = until(ctx, func(ctx context.Context) (bool, error) { // it refuses while the last one is not over
		err := b.store.sentinel.tell(ctx, "SENTINEL", "FAILOVER", masterSet)
		if err != nil && !strings.Contains(err.Error(), "INPROG") && !strings.Contains(err.Error(), "NOGOODSLAVE") {
			return false, err
		}
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	return until(ctx, func(ctx context.Context) (bool, error) {
		// The sentinel ends connections to the old primary, ours too.
		role, roleErr := old.role(ctx)
		linked, linkErr := old.linked(ctx)
		return roleErr == nil && linkErr == nil && role == "slave" && linked, nil
	})
}

// takeOver makes a replica of a cluster the master of its slots: in agreement
// with the old one, which then loses nothing, or on its own.
func (b *blow) takeOver(how ...string) error {
	ctx := context.WithoutCancel(b.ctx)
	var replicas []*server
	for _, node := range b.store.nodes {
		if role, err := node.role(ctx); err != nil {
			return err
		} else if role == "slave" {
			replicas = append(replicas, node)
		}
	}
	if len(replicas) == 0 {
		return errors.New("there is no replica")
	}
	chosen := replicas[b.rand.IntN(len(replicas))]
	b.hit(chosen.addr())
	if err := until(ctx, chosen.linked); err != nil {
		return err
	}
	if err := b.store.timeOut(ctx, "3000"); err != nil {
		return err
	}
	var asked time.Time
	err := until(ctx, func(ctx context.Context) (bool, error) {
		primaries, err := b.store.primaries(ctx)
		if err != nil {
			return false, err
		}
		promoted := slices.Contains(primaries, chosen)
		if promoted && len(primaries) == len(b.store.nodes)/2 { // old and new have changed places
			return b.store.allMet(ctx)
		}
		if promoted || time.Since(asked) < 6*time.Second { // it gives up after 5
			return false, nil
		}
		asked = time.Now()
		return false, chosen.tell(ctx, append([]string{"CLUSTER", "FAILOVER"}, how...)...)
	})
	return errors.Join(err, b.store.timeOut(ctx, nothingFailsOverByItself))
}

// timeOut sets the time, in ms, after which a cluster's nodes give each other up.
// Masters vote for a shard's replica once in twice that time.
func (s *site) timeOut(ctx context.Context, ms string) error {
	for _, node := range s.nodes {
		if err := node.tell(ctx, "CONFIG", "SET", "cluster-node-timeout", ms); err != nil {
			return err
		}
	}
	return nil
}

// moveSlot moves the slot of one lock from its master to another, key by key, as
// the tools of Redis do.
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

func (b *blow) moveSlotOf(ctx context.Context, name string, from *server, pause time.Duration) error {
	primaries, err := b.store.primaries(ctx)
	if err != nil {
		return err
	}
	to := primaries[(slices.Index(primaries, from)+1+b.rand.IntN(len(primaries)-1))%len(primaries)]
	slot, err := from.text(ctx, "CLUSTER", "KEYSLOT", name)
	if err != nil {
		return err
	}
	fromID, err := from.text(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	toID, err := to.text(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	if err := to.tell(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID); err != nil {
		return err
	}
	if err := from.tell(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID); err != nil {
		return err
	}
	for moved := false; ; moved = true {
		keys, err := from.list(ctx, "CLUSTER", "GETKEYSINSLOT", slot, "1")
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		if err := from.tell(ctx, "MIGRATE", "127.0.0.1", to.port, keys[0], "0", "1000"); err != nil {
			return err
		}
		if !moved { // with its keys in two places for a while
			b.wait(pause)
		}
	}
	// The new one first, or both would disown it.
	for _, node := range append([]*server{to, from}, primaries...) {
		if err := node.tell(ctx, "CLUSTER", "SETSLOT", slot, "NODE", toID); err != nil {
			return err
		}
	}
	return nil
}
