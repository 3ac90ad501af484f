// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var f flags
	flag.BoolVar(&f.short, "short", false, "a minute's run, to see that everything works")
	flag.StringVar(&f.only, "only", "", "measure only workloads whose name contains this")
	flag.StringVar(&f.among, "among", "", "measure only peers whose name contains one of these, separated by commas")
	flag.StringVar(&f.out, "out", "", "write report.md, results.json and charts into this directory")
	flag.BoolVar(&f.simulate, "simulate", false, "instead: what larger deployments would do, by simulation, for docs/performance.md")
	flag.BoolVar(&f.redraw, "redraw", false, "instead: write report.md and the charts in -out again, from its results.json")
	flag.BoolVar(&f.families, "families", false, "instead: read-write locks, semaphores, several keys and elections beside peers; with -short, -only and -out")
	flag.IntVar(&f.rounds, "rounds", 0, "with -families: how many instead of five")
	flag.StringVar(&f.child, "child", "", "used by the program itself, as are the flags below: taker, keeper, orders or renewer")
	flag.StringVar(&f.peer, "peer", "", "with -child: whose lock")
	flag.StringVar(&f.redis, "redis", "", "with -child: the server's address")
	flag.StringVar(&f.etcd, "etcd", "", "with -child: the server's address")
	flag.DurationVar(&f.ttl, "ttl", usualTTL, "with -child: of the locks")
	flag.IntVar(&f.keys, "keys", 0, "with -child: how many to hold")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case f.simulate:
		err = simulate(os.Stdout)
	case f.redraw:
		err = redraw(f.out)
	case f.families:
		err = compareFamilies(ctx, f)
	case f.child != "":
		err = runChild(ctx, f)
	default:
		err = run(ctx, f)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type flags struct {
	short, simulate  bool
	redraw           bool
	families         bool
	rounds           int
	only, among, out string
	child, peer      string
	redis, etcd      string
	ttl              time.Duration
	keys             int
}

// among returns the peers whose names contain one of the parts of a list.
func among(all []peer, list string) []peer {
	return slices.DeleteFunc(all, func(p peer) bool {
		return !slices.ContainsFunc(strings.Split(list, ","), func(part string) bool { return strings.Contains(p.name, part) })
	})
}

func run(ctx context.Context, f flags) error {
	size := full
	if f.short {
		size = short
	}
	loads := plan(size, f.only)
	if len(loads) == 0 {
		return fmt.Errorf("no workload's name contains %q", f.only)
	}
	w := world{ttl: usualTTL, short: f.short}
	redis, stopRedis, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer stopRedis()
	etcd, why, stopEtcd, err := startEtcd(ctx)
	if err != nil {
		return err
	}
	defer stopEtcd()
	w.redis, w.etcd = redis, etcd

	r, err := newReport(ctx, w, size, why)
	if err != nil {
		return err
	}
	say := newProgress()
	for _, load := range loads {
		res, err := measure(ctx, say, w, load, among(peers(w), f.among))
		if err != nil {
			return err
		}
		r.Results = append(r.Results, res)
	}
	say.done()
	return errors.Join(r.print(os.Stdout), r.write(f.out), r.failed())
}
