// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type flags struct {
	short, families, simulate, redraw bool
	rounds                            int
	only, among, out, child           string
}

func main() {
	var f flags
	flag.BoolVar(&f.short, "short", false, "a minute's run, to see that everything works")
	flag.StringVar(&f.only, "only", "", "measure only workloads whose name contains this")
	flag.StringVar(&f.among, "among", "", "measure only peers whose name contains one of these, separated by commas")
	flag.IntVar(&f.rounds, "rounds", 0, "how many instead of twenty, or of five with -families")
	flag.StringVar(&f.out, "out", "", "write the report, its figures and charts into this directory")
	flag.BoolVar(&f.families, "families", false, "instead: read-write locks, semaphores, several keys, elections and quorums beside peers")
	flag.BoolVar(&f.simulate, "simulate", false, "instead: what larger deployments would do, by simulation, for docs/performance.md")
	flag.BoolVar(&f.redraw, "redraw", false, "instead: write report.md and the charts in -out again, from its results.json")
	flag.StringVar(&f.child, "child", "", "used by the program itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case f.simulate:
		err = simulate(os.Stdout)
	case f.redraw:
		err = redraw(f.out)
	case f.child != "":
		err = runChild(ctx, f.child)
	default:
		err = run(ctx, f)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the workloads of a plan and reports.
func run(ctx context.Context, f flags) error {
	loads, size := planFor(f)
	if len(loads) == 0 {
		return fmt.Errorf("no workload's name contains %q, or none has a peer whose name contains %q", f.only, f.among)
	}
	load := firstLine("/proc/loadavg") // before the servers start
	w, stop, err := openWorld(ctx, f.short, loads)
	if err != nil {
		return err
	}
	defer stop()
	var r *report
	if err := catch(func() { r = newReport(ctx, w, f, size, load) }); err != nil {
		return err
	}
	start := time.Now()
	for _, load := range loads {
		fmt.Fprintf(os.Stderr, "%v  %s\n", time.Since(start).Round(time.Second), load.name)
		res, err := measure(ctx, w, load)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, res)
	}
	r.took = time.Since(start)
	_, err = fmt.Print(r.markdown())
	return errors.Join(err, r.write(f.out), r.failed())
}

// planFor returns the workloads that the flags select.
func planFor(f flags) (loads []workload, size sizes) {
	plan, size := mutexes, full
	switch {
	case f.families && f.short:
		plan, size = families, shortFamilies
	case f.families:
		plan, size = families, fullFamilies
	case f.short:
		size = short
	}
	if f.rounds > 0 {
		size.rounds = f.rounds
	}
	for _, load := range plan(size) {
		load.peers = among(load.peers, f.among)
		if strings.Contains(load.name, f.only) && len(load.peers) > 0 {
			loads = append(loads, load)
		}
	}
	return loads, size
}
