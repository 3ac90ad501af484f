// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"
)

// An arena is the servers and the JVM that contestants of the lock families meet on.
type arena struct {
	world

	zooKeeper string
	java      *jvm
	// missing says why there is no contestant of that kind: "redisson", "curator", "etcd".
	missing map[string]string
}

// A contestant is a peer, in Go or in Java.
type contestant struct {
	peer

	recipe string // in Java: the name of what it opens there
	needs  string // a key of arena.missing
}

// A comparison is a workload of one lock family, and what it must show.
type comparison struct {
	workload // its peers and how they are prepared follow from the fields below

	contestants []contestant
	targets     []target
	absent      string // which peers have no such thing, for the table
	inGo        func(ctx context.Context, a arena, p peer) (runner, error)
	inJava      func(ctx context.Context, a arena, recipe, key string) (runner, error)
}

// The names of contestants that tables treat differently. Others are peers.
const (
	mutexName    = "mutex"
	redissonName = "Redisson"
	curatorName  = "Curator"
)

// on completes the workload for an arena.
func (c comparison) on(a arena) workload {
	load := c.workload
	load.limit = max(load.limit, time.Minute)
	byName := make(map[string]contestant)
	for _, one := range c.contestants {
		load.peers = append(load.peers, one.peer)
		byName[one.name] = one
	}
	load.leaveOut = func(p peer) string {
		if why := a.missing[byName[p.name].needs]; why != "" {
			return "not measured: " + why
		}
		return ""
	}
	load.prepare = func(ctx context.Context, _ world, p peer) (runner, error) {
		preparing, cancel := context.WithTimeout(ctx, load.limit)
		defer cancel()
		prepare := func() (runner, error) { return c.inGo(preparing, a, p) }
		if recipe := byName[p.name].recipe; recipe != "" {
			prepare = func() (runner, error) { return c.inJava(preparing, a, recipe, c.key(p.name)) }
		}
		r, err := prepare()
		if err != nil {
			return nil, err
		}
		return hurried{r}, nil
	}
	return load
}

// hurried is a runner whose end is not waited for longer than it should take.
type hurried struct{ runner }

func (h hurried) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return h.runner.close(ctx)
}

// key is what a contestant uses. It is also the name of a node in ZooKeeper.
func (c comparison) key(contestant string) string {
	return strings.ReplaceAll("families "+c.name+" "+contestant, " ", "-")
}

// inRedisson and inCurator are contestants in Java.
func inRedisson(name, recipe, setting string) contestant {
	return contestant{peer{name: name, setting: setting}, "redisson " + recipe, "redisson"}
}

func inCurator(recipe, setting string) contestant {
	return contestant{peer{name: curatorName, setting: setting}, "curator " + recipe, "curator"}
}

// familySizes say how much is measured.
type familySizes struct {
	rounds     int
	operations int           // timed one by one in a round
	warm       int           // operations before the first round, in Java
	window     time.Duration // of a round in which a rate is measured
	passes     int           // handoffs in a round
	readers    int           // clients that read together
	many       int           // readers beside a release
	observers  int
	crowded    time.Duration // of a round in which the longest wait is looked for
}

var (
	fullFamilies  = familySizes{5, 500, 2000, 200 * time.Millisecond, 100, 100, 1000, 100, 12 * time.Second}
	shortFamilies = familySizes{1, 50, 50, 20 * time.Millisecond, 10, 10, 100, 10, 200 * time.Millisecond}
)

// familyPlan returns the comparisons whose name contains only.
func familyPlan(size familySizes, only string) (plan []comparison) {
	all := []comparison{
		readAlone(size), readMore(size), readRetained(size), readRelease(size), readTogether(size), readRenewal(size),
		permitsAlone(size), permitsHandoff(size, 2), permitsHandoff(size, 8), permitsHandoff(size, 64), permitsCrowd(size), permitsQueue(size),
		several(size, 3), several(size, 10), severalCrowd(size),
		terms(size), observed(size),
	}
	for _, c := range all {
		if strings.Contains(c.name, only) {
			c.rounds = size.rounds
			plan = append(plan, c)
		}
	}
	return plan
}

// compareFamilies measures the lock families beside peers.
func compareFamilies(ctx context.Context, f flags) error {
	size := fullFamilies
	if f.short {
		size = shortFamilies
	}
	if f.rounds > 0 {
		size.rounds = f.rounds
	}
	plan := familyPlan(size, f.only)
	if len(plan) == 0 {
		return errors.New("no workload's name contains " + f.only)
	}
	load := firstLine("/proc/loadavg") // before the servers start
	a, stop, err := openArena(ctx, f.short)
	if err != nil {
		return err
	}
	defer stop()
	r, err := newFamilyReport(ctx, a, size)
	if err != nil {
		return err
	}
	r.busy(load)
	say := newProgress()
	for _, c := range plan {
		res, err := measure(ctx, say, a.world, c.on(a), nil)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, familyRow{c, res})
	}
	say.done()
	r.took = time.Since(say.start)
	return errors.Join(r.print(os.Stdout), r.write(f.out), r.failed())
}
