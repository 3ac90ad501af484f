// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 5000, "how many handoffs of each kind to time")
	kind := flag.String("taker", "", "used by the program itself: what to take, in a process of its own")
	redis := flag.String("redis", "", "used with -taker: the server's address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if *kind != "" {
		err = take(ctx, *kind, *redis)
	} else {
		err = run(ctx, *rounds)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int) error {
	if rounds < 1 {
		return fmt.Errorf("%d rounds: at least one is needed", rounds)
	}
	address, stop, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer stop()
	floor, err := newBareHandoff(ctx, address)
	if err != nil {
		return err
	}
	lock, err := newLockHandoff(ctx, address)
	if err != nil {
		return err
	}
	floorTimes, lockTimes, err := alternate(ctx, rounds, floor, lock)
	if err != nil {
		return err
	}
	if err := floor.close(ctx); err != nil {
		return err
	}
	if err := lock.close(ctx); err != nil {
		return err
	}
	return report(floorTimes, lockTimes)
}

// alternate times both, one after the other, after a tenth of the rounds to warm
// up.
func alternate(ctx context.Context, rounds int, a, b handoff) (as, bs []time.Duration, err error) {
	for i := range rounds + rounds/10 {
		ta, err := a.pass(ctx)
		if err != nil {
			return nil, nil, err
		}
		tb, err := b.pass(ctx)
		if err != nil {
			return nil, nil, err
		}
		if i >= rounds/10 {
			as, bs = append(as, ta), append(bs, tb)
		}
	}
	return as, bs, nil
}

func report(floor, lock []time.Duration) error {
	slices.Sort(floor)
	slices.Sort(lock)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "handoff between two clients\tp50\tp90\tp99\tp50 / floor\t")
	p50 := quantile(floor, 0.5)
	for _, row := range []struct {
		name  string
		times []time.Duration
	}{{"floor: one script to a subscriber", floor}, {"asynclock: Unlock to Lock", lock}} {
		fmt.Fprintf(out, "%s\t%v\t%v\t%v\t%.2f\t\n", row.name,
			quantile(row.times, 0.5), quantile(row.times, 0.9), quantile(row.times, 0.99),
			float64(quantile(row.times, 0.5))/float64(p50))
	}
	return out.Flush()
}

// quantile returns the q-quantile of sorted times.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))].Round(100 * time.Nanosecond)
}
