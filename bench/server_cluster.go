// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// startCluster starts a Redis Cluster of three masters without replicas, in the way of startRedis,
// and returns the address of one of them.
func startCluster(ctx context.Context) (address string, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	ports, err := freePorts(2 * masters) // one port for clients and one for the other nodes
	if err != nil {
		return "", nil, err
	}
	for i := range masters {
		dir, err := os.MkdirTemp("", "asynclock-bench-")
		if err != nil {
			return "", nil, err
		}
		one, err := startServer(exec.CommandContext(ctx, "redis-server",
			"--port", ports[i], "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
			"--cluster-enabled", "yes", "--cluster-port", ports[masters+i]), dir)
		if err != nil {
			return "", nil, err
		}
		stops = append(stops, one)
	}
	return "127.0.0.1:" + ports[0], stop, formCluster(ctx, ports[:masters], ports[masters:])
}

const (
	masters = 3
	slots   = 16384
)

// formCluster gives each node an equal part of the slots, introduces it to the first node, and
// waits until all nodes know each other.
func formCluster(ctx context.Context, ports, busPorts []string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i, port := range ports {
		first, last := i*slots/masters, (i+1)*slots/masters-1
		for _, command := range [][]string{
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)}, // otherwise nodes dispute whose slots are newer
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)},
			{"CLUSTER", "MEET", "127.0.0.1", ports[0], busPorts[0]},
		} {
			if _, err := askNode(ctx, port, command...); err != nil {
				return err
			}
		}
	}
	for _, port := range ports {
		for {
			said, err := askNode(ctx, port, "CLUSTER", "INFO")
			if err != nil {
				return err
			}
			if strings.Contains(said, "cluster_state:ok") && strings.Contains(said, fmt.Sprintf("cluster_size:%d\r", masters)) {
				break
			}
			time.Sleep(20 * time.Millisecond) // askNode ends with ctx
		}
	}
	return nil
}

// askNode sends a command to the server at port, as soon as the server answers.
func askNode(ctx context.Context, port string, command ...string) (string, error) {
	for {
		option := clientOption(world{redis: "127.0.0.1:" + port})
		option.ForceSingleClient = true
		client, err := rueidis.NewClient(option)
		if err == nil {
			defer client.Close()
			return client.Do(ctx, client.B().Arbitrary(command...).Build()).ToString()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return "", fmt.Errorf("redis-server at port %s does not answer: %w", port, err)
		}
	}
}
