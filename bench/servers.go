// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// openWorld starts the servers that workloads need, and for Java the JVM and ZooKeeper. Only Redis has to be there. The
// report says why another is not.
func openWorld(ctx context.Context, short bool, loads []workload) (w world, stop func(), err error) {
	var all ends
	stop = func() { _ = all.close(context.WithoutCancel(ctx)) } // servers that keep nothing
	w = world{ttl: usualTTL, short: short, missing: make(map[string]string)}
	err = catch(func() {
		w.redis = startRedis(ctx, &all)
		w.servers = []string{w.redis}
		for range mostServers(loads) - 1 {
			w.servers = append(w.servers, startRedis(ctx, &all))
		}
		if why := catch(func() { w.etcd = startEtcd(ctx, &all) }); why != nil {
			w.missing[etcdName] = why.Error()
		}
		if slices.ContainsFunc(loads, func(load workload) bool { return load.inJava != nil }) {
			w.openJava(ctx, &all)
		}
		for _, address := range w.servers {
			w.at(address).settle(ctx)
		}
	})
	if err != nil {
		stop()
	}
	return w, stop, err
}

// mostServers is how many servers of Redis one of the workloads needs.
func mostServers(loads []workload) (n int) {
	for _, load := range loads {
		n = max(n, load.servers)
	}
	return n
}

// settle waits until a server that was just started grants keys. A round would otherwise be cut short
// then, and those who gave up waiting would be remembered for two minutes, at a price for others.
func (w world) settle(ctx context.Context) {
	c := openAsynclock(w)
	check(c.locks.WithLock(ctx, "bench:settled", func(context.Context, *asynclock.Lease) error { return nil }))
	check(c.close(ctx))
}

func (w *world) openJava(ctx context.Context, all *ends) {
	if why := catch(func() { w.zooKeeper = startZooKeeper(ctx, all) }); why != nil {
		w.missing["curator"] = "there is no ZooKeeper: " + why.Error()
	}
	if why := catch(func() { w.java = startJVM(ctx, all) }); why != nil {
		w.missing["redisson"] = why.Error()
		if w.zooKeeper != "" {
			w.missing["curator"] = why.Error()
		}
	}
}

// startRedis starts a server that keeps nothing on disk, and returns its address.
func startRedis(ctx context.Context, all *ends) string {
	r := must(servers.StartRedis(ctx, servers.Config{Dir: directory(all, "")}))
	all.after(closing(r))
	return r.Addr
}

// startZooKeeper starts a server with its data in memory, since Redis writes nothing to disk either.
// It compiles as servers do, unlike those of tests.
func startZooKeeper(ctx context.Context, all *ends) string {
	check(servers.FindZooKeeper())
	z := must(servers.StartZooKeeper(ctx, directory(all, memory()), "-XX:TieredStopAtLevel=4", "-Xmx512m"))
	all.after(func(context.Context) error {
		z.Kill()
		return nil
	})
	return z.Addr
}

// startEtcd starts a server with its data in memory.
func startEtcd(ctx context.Context, all *ends) string {
	program, err := exec.LookPath("etcd")
	if err != nil {
		check(errors.New("etcd is not installed (Debian: apt-get install etcd-server)"))
	}
	ports := must(servers.FreePorts(2))
	address := "127.0.0.1:" + strconv.Itoa(ports[0])
	own, others := "http://"+address, "http://127.0.0.1:"+strconv.Itoa(ports[1])
	cmd := exec.Command(program, "--data-dir", directory(all, memory()), "--log-level", "error",
		"--listen-client-urls", own, "--advertise-client-urls", own,
		"--listen-peer-urls", others, "--initial-advertise-peer-urls", others, "--initial-cluster", "default="+others)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { // a package's settings for its service
		return strings.HasPrefix(entry, "ETCD_")
	})
	server := must(proc.Start(cmd))
	all.after(func(context.Context) error { return server.Kill() })
	e := new(etcdClient).dial(world{etcd: address})
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := e.Get(ctx, "ready"); err != nil {
		check(fmt.Errorf("etcd at %s does not answer: %w", address, err))
	}
	check(e.close(ctx))
	return address
}

// directory makes one that is removed at the end.
func directory(all *ends, in string) string {
	dir := must(os.MkdirTemp(in, "asynclock-bench-"))
	all.after(func(context.Context) error { return os.RemoveAll(dir) })
	return dir
}

// memory returns a directory that is not on a disk, if the system has one.
func memory() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}
