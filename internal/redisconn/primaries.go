// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/rueidis"
)

// Primaries returns the nodes that have keys of their own, and the nodes that do not tell their
// role. Scanning a replica finds some keys twice, which is allowed. If Primaries also returns an
// error, there are keys elsewhere: a node that is no replica can't be reached.
func Primaries(ctx context.Context, conn *Conn) ([]rueidis.Client, error) {
	if !conn.Cluster() {
		return []rueidis.Client{conn.Commands}, nil
	}
	primaries, down := askRoles(ctx, conn)
	// A node that is down can't say whether it was a replica, and the client may not know a node
	// that has failed. The other nodes know.
	for _, addr := range slices.Sorted(maps.Keys(primaries)) {
		node := primaries[addr]
		slots, err := conn.doOn(ctx, node, node.B().ClusterSlots().Build()).ToMessage()
		if err != nil {
			continue // it has gone down since, or the user lacks the right
		}
		masters, err := mastersOf(slots, addr)
		for _, master := range masters {
			if err == nil && primaries[master] == nil {
				err = fmt.Errorf("the cluster's node %s: %w", master, cmp.Or(down[master], rueidis.ErrNoSlot))
			}
		}
		return slices.Collect(maps.Values(primaries)), err
	}
	for addr, err := range down {
		return slices.Collect(maps.Values(primaries)), fmt.Errorf("the cluster's node %s: %w", addr, err)
	}
	if len(primaries) == 0 {
		return nil, rueidis.ErrNoSlot
	}
	return slices.Collect(maps.Values(primaries)), nil
}

// askRoles asks all nodes at once. It returns the nodes that do not call themselves replicas, and
// the errors of those that did not answer.
func askRoles(ctx context.Context, conn *Conn) (primaries map[string]rueidis.Client, down map[string]error) {
	primaries, down = make(map[string]rueidis.Client), make(map[string]error)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for addr, node := range conn.Commands.Nodes() {
		asking.Go(func() { // ends with the answer or ctx
			role, err := conn.doOn(ctx, node, node.B().Role().Build()).ToArray()
			_, refused := rueidis.IsRedisErr(err)
			name := ""
			if len(role) > 0 {
				name, _ = role[0].ToString()
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && !refused:
				down[addr] = err
			case refused || name == "master":
				primaries[addr] = node
			}
		})
	}
	asking.Wait()
	return primaries, down
}

// errSlots: an answer to CLUSTER SLOTS that no server gives.
var errSlots = errors.New("redis: unexpected reply to CLUSTER SLOTS")

// mastersOf returns the addresses of all nodes that have slots, from the answer of the node at addr
// to CLUSTER SLOTS, in the form in which rueidis names nodes. If the answer has no address for a
// node, the answering node's host stands for it.
func mastersOf(slots rueidis.RedisMessage, addr string) (masters []string, err error) {
	ranges, err := slots.ToArray()
	if err != nil {
		return nil, errSlots
	}
	for _, r := range ranges {
		fields, _ := r.ToArray() // first and last slot, the master, its replicas
		if len(fields) < 3 {
			return nil, errSlots
		}
		node, _ := fields[2].ToArray()
		if len(node) < 2 {
			return nil, errSlots
		}
		host, err := node[0].ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, errSlots
		}
		port, err := node[1].ToInt64()
		if err != nil {
			return nil, errSlots
		}
		if host == "" {
			host, _, _ = net.SplitHostPort(addr)
		}
		if master := net.JoinHostPort(host, strconv.FormatInt(port, 10)); !slices.Contains(masters, master) {
			masters = append(masters, master)
		}
	}
	return masters, nil
}
