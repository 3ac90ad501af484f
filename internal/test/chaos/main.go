// SPDX-License-Identifier: Apache-2.0

// Command chaos is the fault suite: it lets several processes lock a few keys
// of a real redis-server and write to resources that check tokens, breaks
// whatever can be broken meanwhile, and then judges all that happened.
//
//	go run ./internal/test/chaos -duration 1m             with a random seed, which it prints
//	go run ./internal/test/chaos -duration 1m -seed 7     the same again
//	go run ./internal/test/chaos -faults 'FLUSHALL,worker killed'
//	go run ./internal/test/chaos -list                    what can be broken
//
// docs/chaos.md says what is judged and has the figures of a long run. The exit
// code is 1 if anything that is promised was not kept.
//
// To read the code, begin with run.go, which sets the stage. caller.go and holding.go
// are what a worker does, fault.go is what can be broken, and by whom; what is written
// down of it is package history's, and what it is worth, package check's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/check"
)

func main() {
	if text := os.Getenv(workerVariable); text != "" {
		if err := beWorker(text); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := runMain(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

// An order is what the command line says.
type order struct {
	seed     uint64
	duration time.Duration
	rest     time.Duration
	sites    string
	faults   string
	goRedis  bool
	jobs     int
	judged   string
	keep     bool
	page     string
}

// runMain does what the arguments say and reports whether all is well.
func runMain(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	var o order
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.Uint64Var(&o.seed, "seed", 0, "what happens when; 0: a random one")
	flags.DurationVar(&o.duration, "duration", time.Minute, "how long to go on breaking things")
	flags.DurationVar(&o.rest, "rest", time.Second, "how long to wait between two faults of a kind, on average")
	flags.StringVar(&o.sites, "site", standalone, "where the locks are kept: standalone, sentinel, cluster or quorum; several, one after the other, separated by commas")
	flags.StringVar(&o.faults, "faults", "", "only these, separated by commas")
	flags.BoolVar(&o.goRedis, "goredis", false, "workers have clients of go-redis, by goredisstore.New")
	flags.IntVar(&o.jobs, "jobs", 0, "so many processes, which run jobs and do nothing else; 0: a few that do everything")
	flags.BoolVar(&o.keep, "keep", false, "keep the history even if all is well")
	flags.StringVar(&o.judged, "judge", "", "make no run, and judge the histories in these directories, that -keep kept")
	flags.StringVar(&o.page, "report", "", "a file to write the report to, as Markdown")
	list := flags.Bool("list", false, "print the faults and do nothing")
	if err := flags.Parse(args); err != nil {
		return errors.Is(err, flag.ErrHelp), nil // it has been printed
	}
	if o.jobs < 0 {
		return false, fmt.Errorf("-jobs %d: processes are needed, or 0", o.jobs)
	}
	if *list {
		for _, f := range faults {
			fmt.Fprintln(out, f.name)
		}
		return true, nil
	}
	dirs := strings.Split(o.judged, ",")
	if o.judged == "" {
		if dirs, err = o.perform(ctx, out); err != nil {
			return false, err
		}
	}
	return o.judge(dirs, out)
}

// perform makes a run at each site and returns where the histories are.
func (o order) perform(ctx context.Context, out io.Writer) (dirs []string, err error) {
	var some []fault
	if o.faults != "" {
		if some, err = faultsNamed(strings.Split(o.faults, ",")); err != nil {
			return nil, err
		}
	}
	if o.seed == 0 {
		o.seed = 1 + rand.Uint64N(1<<32)
	}
	for site := range strings.SplitSeq(o.sites, ",") {
		dir, err := os.MkdirTemp("", "chaos")
		if err != nil {
			return nil, err
		}
		s := defaultSettings(site, o.seed, o.duration, dir)
		s.rest, s.build, s.GoRedis = o.rest, commit(ctx), o.goRedis
		s.calm = 3 * s.limits().Repair // so that a waiter that is forgotten is found
		if some != nil {
			s.faults = some
		}
		if o.jobs > 0 {
			s.onlyJobs(o.jobs)
		}
		fmt.Fprintf(out, "seed %d for %v, %s\n", s.seed, s.duration, s.site)
		if err := perform(ctx, s); err != nil {
			return nil, fmt.Errorf("%w; see %s", err, dir)
		}
		dirs = append(dirs, s.historyDir())
	}
	return dirs, nil
}

// commit is the one that is checked out here, which is what go run runs, and whether
// there are changes. The go command notes neither for go run.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "" // not a clone, or there is no git
	}
	return strings.TrimSpace(string(out))
}

// judge judges histories, removes those that are of no more use, and reports
// whether all is well.
func (o order) judge(dirs []string, out io.Writer) (ok bool, err error) {
	ok = true
	var verdicts []verdict
	for _, dir := range dirs {
		v, err := judge(dir)
		if err != nil {
			return false, err
		}
		verdicts = append(verdicts, v)
		summarize(out, v.report)
		bad := len(v.report.Violations) > 0
		ok = ok && !bad
		if bad || o.keep || o.judged != "" {
			fmt.Fprintf(out, "the history is in %s\n", dir)
		} else if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			return false, err
		}
	}
	if o.page != "" {
		return ok, os.WriteFile(o.page, []byte(document(verdicts)), 0o644)
	}
	return ok, nil
}

// summarize prints a report for a terminal.
func summarize(out io.Writer, r check.Report) {
	fmt.Fprintf(out, "%d leases (%d of readers, %d of permits), %d stale writes refused, %d excused overlaps, %d with overtaken tokens, longest wait %v\n",
		r.Leases, r.Shared, r.Permits, r.Refused, r.Excused, r.Overtaken, r.Longest.Round(time.Millisecond))
	fmt.Fprintf(out, "%d leases of one of several keys, %d looks at who leads, %d runs (%d repeated after a loss) in %d intervals, in %d of which others found nothing to do\n",
		r.Parts, r.Looks, r.Runs, r.Repeats, r.Slots, r.Reached)
	fmt.Fprintf(out, "%d intervals in whose second half the store could be reached; %d need a run, %d others have none\n", r.Due, r.Firm, r.Undone)
	fmt.Fprintf(out, "%d readers before a queued writer that had the right to, %v late at most; %d before one whom a fault may have moved\n",
		r.Behind, r.Unheard.Round(time.Millisecond), r.Moved)
	fmt.Fprintf(out, "writes %v, requests that failed %v\n", r.Writes, r.Failed)
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%4d  %-45s  next lease after at most %v, excuses %d; a wanted key had none for %v, %v of it after the fault\n",
			f.Count, f.Name, f.Worst.Round(time.Millisecond), f.Excused, f.Idle.Round(time.Millisecond), f.After.Round(time.Millisecond))
	}
	const most = 20
	for i, v := range r.Violations {
		if i == most {
			fmt.Fprintf(out, "… and %d more\n", len(r.Violations)-most)
			break
		}
		fmt.Fprintln(out, "VIOLATION", v)
	}
	fmt.Fprintf(out, "%d violations\n", len(r.Violations))
}
