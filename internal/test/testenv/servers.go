// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// A target is one thing that tests talk to, with the servers behind it.
type target struct {
	variable, url string
	nodes         []*servers.Redis  // that grant locks only when they are old enough
	others        []*servers.Server // that grant them at once
	close         func()
}

// A starter starts a target and returns when it can be used, except for its age.
type starter func(ctx context.Context, dir string) (*target, error)

// starters are those of what the plan needs.
func starters(plan plan) []starter {
	all := []starter{startAlone, startSentinelSet, startCluster}
	for _, k := range servers.Databases {
		all = append(all, func(ctx context.Context, _ string) (*target, error) { return startDatabase(ctx, k) })
	}
	if plan.zooKeeper {
		all = append(all, startZooKeeper)
	}
	return all
}

// start starts all targets at the same time. If one can't be started, none is left.
func start(ctx context.Context, all []starter, dir string) ([]*target, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found, problems := make([]*target, len(all)), make([]error, len(all))
	var starting sync.WaitGroup
	for i, start := range all {
		starting.Go(func() {
			if found[i], problems[i] = start(ctx, dir); problems[i] != nil {
				cancel(problems[i]) // the others need not go on
			}
		})
	}
	starting.Wait()
	if ctx.Err() == nil {
		return found, nil
	}
	stop(slices.DeleteFunc(found, func(t *target) bool { return t == nil }))
	return nil, context.Cause(ctx)
}

func stop(all []*target) {
	for _, t := range all {
		t.close()
	}
}

func startAlone(ctx context.Context, dir string) (*target, error) {
	r, err := servers.StartRedis(ctx, servers.Config{Dir: dir, Name: "standalone"})
	if err != nil {
		return nil, err
	}
	return usable(ctx, &target{"ASYNCLOCK_REDIS_URL", r.URL(), []*servers.Redis{r}, nil, r.Close})
}

func startSentinelSet(ctx context.Context, dir string) (*target, error) {
	const replicas, sentinels = 2, 3
	d, err := servers.StartSentinel(ctx, servers.Config{Dir: dir}, replicas, sentinels)
	if err != nil {
		return nil, err
	}
	return usable(ctx, &target{"ASYNCLOCK_SENTINEL_URL", d.URL(), slices.Concat(d.Nodes, d.Sentinels), nil, d.Close})
}

func startCluster(ctx context.Context, dir string) (*target, error) {
	const masters, replicas = 3, 0
	d, err := servers.StartCluster(ctx, servers.Config{Dir: dir}, masters, replicas)
	if err != nil {
		return nil, err
	}
	return usable(ctx, &target{"ASYNCLOCK_CLUSTER_URL", d.URL(), d.Nodes, nil, d.Close})
}

// usable waits until a client that knows only the URL can write.
func usable(ctx context.Context, t *target) (*target, error) {
	if err := servers.Await(ctx, t.variable, t.takesWrites); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *target) takesWrites(ctx context.Context) error {
	option, err := rueidis.ParseURL(t.url)
	if err != nil {
		return err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Set().Key("testenv").Value("ready").PxMilliseconds(1).Build()).Error()
}

// testDatabase is the one that tests work in.
const testDatabase = "asynclock"

func startDatabase(ctx context.Context, k *servers.DatabaseKind) (*target, error) {
	d, err := k.Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.Create(ctx, testDatabase); err != nil {
		d.Close()
		return nil, err
	}
	return &target{k.Variable, d.URL(testDatabase), nil, []*servers.Server{&d.Server}, d.Close}, nil
}

// startZooKeeper starts one that stands alone. The tests start ensembles themselves,
// since they kill them.
func startZooKeeper(ctx context.Context, dir string) (*target, error) {
	z, err := servers.StartZooKeeper(ctx, dir)
	if err != nil {
		return nil, err
	}
	return &target{"ASYNCLOCK_ZOOKEEPER", z.Addr, nil, []*servers.Server{&z.Server}, z.Kill}, nil
}

// servers are all processes of the target.
func (t *target) servers() []*servers.Server {
	all := slices.Clone(t.others)
	for _, r := range t.nodes {
		all = append(all, &r.Server)
	}
	return all
}

// died names the servers that are gone although nobody stopped them.
func died(all []*target) (names []string) {
	for _, t := range all {
		for _, s := range t.servers() {
			if err := s.Died(); err != nil {
				names = append(names, fmt.Sprintf("%s (%v)", s.Name, err))
			}
		}
	}
	return names
}

// env is what the tests learn about the targets.
func env(all []*target) []string {
	env := []string{"ASYNCLOCK_REQUIRE=1"}
	for _, t := range all {
		env = append(env, t.variable+"="+t.url)
	}
	return env
}
