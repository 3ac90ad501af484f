// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"slices"
)

// openArena starts all servers and the JVM. Only Redis has to be there. The report
// says why another server is not.
func openArena(ctx context.Context, short bool) (a arena, stop func(), err error) {
	a = arena{world: world{ttl: usualTTL, short: short}, missing: make(map[string]string)}
	var stops []func()
	stop = func() {
		for _, s := range slices.Backward(stops) {
			s()
		}
	}
	redis, stopRedis, err := startRedis(ctx)
	if err != nil {
		return a, stop, err
	}
	a.redis, stops = redis, append(stops, stopRedis)
	a.openEtcd(ctx, &stops)
	a.openZooKeeper(ctx, &stops)
	a.openJava(ctx, &stops)
	client, err := openAsynclock(a.world)
	if err == nil {
		err = client.settle(ctx)
	}
	if err == nil {
		err = client.close(ctx)
	}
	if err != nil {
		stop()
	}
	return a, stop, err
}

func (a *arena) openEtcd(ctx context.Context, stops *[]func()) {
	etcd, why, stop, err := startEtcd(ctx)
	if err != nil {
		a.missing["etcd"] = err.Error()
		return
	}
	a.etcd, *stops = etcd, append(*stops, stop)
	if why != "" {
		a.missing["etcd"] = why
	}
}

func (a *arena) openZooKeeper(ctx context.Context, stops *[]func()) {
	address, stop, err := startZooKeeper(ctx)
	if err != nil {
		a.missing["curator"] = "there is no ZooKeeper: " + err.Error()
		return
	}
	a.zooKeeper, *stops = address, append(*stops, stop)
}

func (a *arena) openJava(ctx context.Context, stops *[]func()) {
	why := ""
	if _, err := exec.LookPath("mvn"); err != nil {
		why = err.Error()
	} else if j, err := startJVM(ctx); err != nil {
		why = err.Error()
	} else {
		a.java, *stops = j, append(*stops, j.stop)
	}
	if why == "" {
		return
	}
	for _, who := range []string{"redisson", "curator"} {
		if a.missing[who] == "" {
			a.missing[who] = why
		}
	}
}
