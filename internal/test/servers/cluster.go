// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const slots = 16384

// StartCluster starts a Cluster of masters with equal ranges of slots, each with so many
// replicas. It returns when all nodes agree that it is whole.
func StartCluster(ctx context.Context, c Config, masters, replicas int) (*Deployment, error) {
	d := &Deployment{config: c, masters: masters}
	return d.whole(d.form(ctx, masters*replicas))
}

func (d *Deployment) form(ctx context.Context, replicas int) (err error) {
	d.Nodes, err = startAll(d.masters+replicas, func(i int) (*Redis, error) { return d.startNode(ctx, i) })
	if err != nil {
		return err
	}
	for i, master := range d.Nodes[:d.masters] {
		if err := addSlots(ctx, master, i*slots/d.masters, (i+1)*slots/d.masters); err != nil {
			return err
		}
	}
	if err := d.meet(ctx); err != nil {
		return err
	}
	for i, replica := range d.Nodes[d.masters:] {
		if err := d.replicate(ctx, replica, d.Nodes[i%d.masters]); err != nil {
			return err
		}
	}
	return d.Agree(ctx)
}

// startNode starts a node with a config epoch of its own. Nodes of the same epoch give
// each other new ones for a while, and dispute meanwhile who has newer slots.
func (d *Deployment) startNode(ctx context.Context, i int) (*Redis, error) {
	timeout := strconv.FormatInt(d.config.patience().Milliseconds(), 10)
	c := d.config.named(numbered("node", i), "--cluster-enabled", "yes", "--cluster-node-timeout", timeout)
	node, err := StartRedis(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
		node.Close()
		return nil, err
	}
	return node, nil
}

// addSlots gives a node that is in no Cluster yet the slots from first to before end.
func addSlots(ctx context.Context, node *Redis, first, end int) error {
	words := []string{"CLUSTER", "ADDSLOTS"} // Redis 6.2 knows no ranges
	for slot := first; slot < end; slot++ {
		words = append(words, strconv.Itoa(slot))
	}
	return node.Do(ctx, words...)
}

// meet introduces all nodes to the first, through which they find each other, and waits
// until they have. It does so again and again: a busy machine may not get through a
// handshake in time, and then the two have forgotten each other.
func (d *Deployment) meet(ctx context.Context) error {
	var met time.Time
	return Await(ctx, "the Cluster", func(ctx context.Context) error {
		if time.Since(met) > min(d.config.patience(), 2*time.Second) {
			met = time.Now()
			for _, node := range d.Nodes[1:] {
				if err := d.Nodes[0].Do(ctx, "CLUSTER", "MEET", host, node.Port()); err != nil {
					return err
				}
			}
		}
		return d.agree(ctx)
	})
}

// Agree waits until all nodes of a Cluster know each other, and a master of each slot.
func (d *Deployment) Agree(ctx context.Context) error { return Await(ctx, "the Cluster", d.agree) }

func (d *Deployment) agree(ctx context.Context) error {
	for _, node := range d.Nodes {
		facts, err := node.Facts(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		err = expect(facts, map[string]string{
			"cluster_state":       "ok",
			"cluster_slots_ok":    strconv.Itoa(slots),
			"cluster_known_nodes": strconv.Itoa(len(d.Nodes)),
			"cluster_size":        strconv.Itoa(d.masters),
		})
		if err != nil {
			return fmt.Errorf("%s: %w", node.Name, err)
		}
	}
	return nil
}

// AddReplica starts one more node of a Cluster, as the replica of a master.
func (d *Deployment) AddReplica(ctx context.Context, master *Redis) (*Redis, error) {
	node, err := d.startNode(ctx, len(d.Nodes))
	if err != nil {
		return nil, err
	}
	d.Nodes = append(d.Nodes, node)
	if err := d.meet(ctx); err != nil {
		return nil, err
	}
	if err := d.replicate(ctx, node, master); err != nil {
		return nil, err
	}
	return node, d.Agree(ctx)
}

// replicate makes a node a master's replica. It waits until the replica is in step and the
// master knows it. A master ignores the takeover of an unknown replica.
func (d *Deployment) replicate(ctx context.Context, node, master *Redis) error {
	id, err := master.Text(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	if err := node.Do(ctx, "CLUSTER", "REPLICATE", id); err != nil {
		return err
	}
	if err := awaitReplica(ctx, node, master); err != nil {
		return err
	}
	return Await(ctx, node.Name, func(ctx context.Context) error {
		replicas, err := master.List(ctx, "CLUSTER", "REPLICAS", id)
		if err == nil && len(replicas) == 0 {
			return fmt.Errorf("%s knows of no replica", master.Name)
		}
		return err
	})
}
