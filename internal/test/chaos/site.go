// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// The kinds of places where locks are kept in a run.
const (
	standalone = "standalone"
	sentinel   = "sentinel"
	cluster    = "cluster"
	quorum     = "quorum"
)

// A site is the servers that keep the locks.
type site struct {
	*servers.Deployment // of one node, if it stands alone

	url string // for clients, as rueidis.ParseURL takes it; of a quorum, several
}

// durable makes a server keep its data through being killed. It writes before
// each answer; with everysec, Redis would put off writing while it syncs.
var durable = []string{"--appendonly", "yes", "--appendfsync", "no"}

// nothingFailsOverByItself: the nemesis pauses and slows down servers for less
// than that. When it wants a failover, it asks for one, and so knows its time.
const nothingFailsOverByItself = time.Minute

// startSite starts one, with its data under dir.
func startSite(ctx context.Context, kind, dir string, env []string) (*site, error) {
	c := servers.Config{
		Dir: dir, Env: env, Patience: nothingFailsOverByItself,
		Args: append([]string{"--enable-debug-command", "yes"}, refusesSoon...), // for faults that the server does to itself
	}
	switch kind {
	case standalone:
		c.Args = append(c.Args, durable...)
		node, err := servers.StartRedis(ctx, c)
		if err != nil {
			return nil, err
		}
		return &site{&servers.Deployment{Nodes: []*servers.Redis{node}}, node.URL()}, nil
	case sentinel: // a primary, a replica and a sentinel
		return newSite(servers.StartSentinel(ctx, c, 1, 1))
	case cluster: // three masters, each with a replica
		return newSite(servers.StartCluster(ctx, c, 3, 1))
	case quorum:
		return startQuorum(ctx, c)
	}
	return nil, fmt.Errorf("there is no site %q", kind)
}

func newSite(d *servers.Deployment, err error) (*site, error) {
	if err != nil {
		return nil, err
	}
	return &site{d, d.URL()}, nil
}

// primaries returns the servers that have keys of their own.
func (s *site) primaries(ctx context.Context) ([]*servers.Redis, error) {
	all, err := s.withRole(ctx, "master")
	if err == nil && len(all) == 0 {
		err = errors.New("there is no primary")
	}
	return all, err
}

func (s *site) withRole(ctx context.Context, role string) (all []*servers.Redis, err error) {
	for _, node := range s.Nodes {
		is, err := node.Role(ctx)
		if err != nil {
			return nil, err
		}
		if is == role {
			all = append(all, node)
		}
	}
	return all, nil
}

// names lists our Redis keys, by the server that has them.
func (s *site) names(ctx context.Context) (map[*servers.Redis][]string, error) {
	names := make(map[*servers.Redis][]string)
	primaries, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range primaries {
		if names[node], err = node.List(ctx, "KEYS", prefix+":*"); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// channels lists our channels that somebody is subscribed to.
func (s *site) channels(ctx context.Context) (all []string, err error) {
	for _, node := range s.Nodes {
		for _, question := range []string{"CHANNELS", "SHARDCHANNELS"} {
			some, err := node.List(ctx, "PUBSUB", question, prefix+":*")
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
