// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of places where locks are kept in a run.
const (
	standalone = "standalone"
	sentinel   = "sentinel"
	cluster    = "cluster"
)

// A site is the servers that keep the locks.
type site struct {
	kind     string
	url      string    // for clients, as rueidis.ParseURL takes it
	nodes    []*server // with data
	sentinel *server   // of a sentinel set
}

// durable makes a server keep its data through being killed. It writes before
// each answer; with everysec, Redis would put off writing while it syncs.
var durable = []string{"--appendonly", "yes", "--appendfsync", "no"}

// nothingFailsOverByItself: the nemesis pauses and slows down servers for less
// than that. When it wants a failover, it asks for one, and so knows its time.
const nothingFailsOverByItself = "60000"

// startSite starts one, with its data under dir.
func startSite(ctx context.Context, kind, dir string, env []string) (s *site, err error) {
	s = &site{kind: kind}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	switch kind {
	case standalone:
		if err = s.add(ctx, dir, env, durable...); err == nil {
			s.url = "redis://" + s.nodes[0].addr()
		}
	case sentinel:
		err = s.startSentinelSet(ctx, dir, env)
	case cluster:
		err = s.startCluster(ctx, dir, env)
	default:
		err = fmt.Errorf("there is no site %q", kind)
	}
	return s, err
}

// add starts one more server with data.
func (s *site) add(ctx context.Context, dir string, env []string, args ...string) error {
	node, err := startServer(ctx, filepath.Join(dir, "node"+strconv.Itoa(len(s.nodes)+1)), env, args...)
	if err == nil {
		s.nodes = append(s.nodes, node)
	}
	return err
}

const masterSet = "chaos"

// startSentinelSet starts a primary, a replica and a sentinel.
func (s *site) startSentinelSet(ctx context.Context, dir string, env []string) error {
	fast := []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	if err := s.add(ctx, dir, env, fast...); err != nil {
		return err
	}
	primary := s.nodes[0]
	if err := s.add(ctx, dir, env, append(fast, "--replicaof", "127.0.0.1", primary.port)...); err != nil {
		return err
	}
	if err := until(ctx, s.nodes[1].linked); err != nil {
		return err
	}
	config := filepath.Join(dir, "sentinel.conf") // it insists on a file to write to
	text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]s 1\nsentinel down-after-milliseconds %[1]s %[3]s\nsentinel failover-timeout %[1]s 3000\n",
		masterSet, primary.port, nothingFailsOverByItself)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	var err error
	if s.sentinel, err = startServer(ctx, filepath.Join(dir, "sentinel"), nil, config, "--sentinel"); err != nil {
		return err
	}
	s.url = "redis://" + s.sentinel.addr() + "?master_set=" + masterSet
	return until(ctx, s.replicaIsKnown)
}

// linked reports whether a replica has its primary's data.
func (s *server) linked(ctx context.Context) (bool, error) {
	text, err := s.text(ctx, "INFO", "replication")
	return strings.Contains(text, "master_link_status:up"), err
}

func (s *site) replicaIsKnown(ctx context.Context) (bool, error) {
	text, err := s.sentinel.text(ctx, "SENTINEL", "REPLICAS", masterSet)
	return strings.Contains(text, "master-link-status:ok") || strings.Contains(text, "master-link-status ok"), err
}

// startCluster starts three masters, each with a replica.
func (s *site) startCluster(ctx context.Context, dir string, env []string) error {
	const masters, slots = 3, 16384
	for range 2 * masters {
		if err := s.add(ctx, dir, env, "--cluster-enabled", "yes", "--cluster-node-timeout", nothingFailsOverByItself,
			"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"); err != nil {
			return err
		}
	}
	first := s.nodes[0]
	for i, node := range s.nodes {
		if err := node.tell(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i < masters {
			last := strconv.Itoa(slots*(i+1)/masters - 1)
			if err := node.tell(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(slots*i/masters), last); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := first.tell(ctx, "CLUSTER", "MEET", "127.0.0.1", node.port); err != nil {
				return err
			}
		}
	}
	if err := until(ctx, s.allMet); err != nil {
		return err
	}
	for i, node := range s.nodes[masters:] {
		id, err := s.nodes[i].text(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		if err := node.tell(ctx, "CLUSTER", "REPLICATE", id); err != nil {
			return err
		}
		if err := until(ctx, node.linked); err != nil {
			return err
		}
	}
	var addrs []string
	for _, node := range s.nodes {
		addrs = append(addrs, node.addr())
	}
	s.url = "redis://" + addrs[0] + "?addr=" + strings.Join(addrs[1:], "&addr=")
	return until(ctx, s.allMet)
}

// allMet reports whether all nodes of a cluster know each other and have all
// slots.
func (s *site) allMet(ctx context.Context) (bool, error) {
	for _, node := range s.nodes {
		text, err := node.text(ctx, "CLUSTER", "INFO")
		if err != nil || !strings.Contains(text, "cluster_state:ok") ||
			!strings.Contains(text, fmt.Sprintf("cluster_known_nodes:%d\r", len(s.nodes))) {
			return false, err
		}
	}
	return true, nil
}

// primaries returns the servers that have keys of their own.
func (s *site) primaries(ctx context.Context) (all []*server, err error) {
	for _, node := range s.nodes {
		role, err := node.role(ctx)
		if err != nil {
			return nil, err
		}
		if role == "master" {
			all = append(all, node)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there is no primary")
	}
	return all, nil
}

// names lists our Redis keys, by the server that has them.
func (s *site) names(ctx context.Context) (map[*server][]string, error) {
	names := make(map[*server][]string)
	primaries, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range primaries {
		if names[node], err = node.list(ctx, "KEYS", prefix+":*"); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// channels lists our channels that somebody is subscribed to.
func (s *site) channels(ctx context.Context) (all []string, err error) {
	for _, node := range s.nodes {
		for _, question := range []string{"CHANNELS", "SHARDCHANNELS"} {
			some, err := node.list(ctx, "PUBSUB", question, prefix+":*")
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (s *site) close() {
	for _, node := range append(slices.Clone(s.nodes), s.sentinel) {
		if node != nil {
			node.close()
		}
	}
}

// until asks again and again, for half a minute at most.
func until(ctx context.Context, isSo func(context.Context) (bool, error)) error {
	for range 1000 {
		if ok, err := isSo(ctx); ok || err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}
	return errors.New("waited in vain for the servers to agree")
}
