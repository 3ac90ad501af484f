// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

// busyKeys is how many keys in use make a server one that bench leaves alone.
const busyKeys = 100

const benchHelp = `bench measures what locks cost between this machine and the store:

  alone      lock and unlock a free key, one after the other
  handoff    from an unlock until the next client, which waits, has the key
  together   lock and unlock, by as many goroutines as --clients says, each
             with keys of its own
  renewing   alone again, while --keys others are held and renewed once a second

It puts load on the server: 'together' sends as much as it gets answers for, so
whoever else uses the server waits longer meanwhile. It lasts as long as --for
says, four times a quarter. Its keys begin with asynclock-bench/ and are given
back at the end.

bench refuses to run where more than 100 keys are in use, unless --anyway is
given. Figures of one machine and one moment say little about another.

With --json: measurements, each with name, count, per_second, p50_us and p99_us.
`

type benchOptions struct {
	keys, clients  int
	duration       time.Duration
	asJSON, anyway bool
}

func (a *app) benchCommand() *cobra.Command {
	o := benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure locks on your own server, which gets load",
		Long:  benchHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.keys < 1 || o.clients < 1 || o.keys > 100_000 || o.clients > 10_000 || o.duration < 100*time.Millisecond || o.duration > time.Hour {
				return &exitError{exitUsage, errors.New("--keys is 1 to 100000, --clients 1 to 10000, and --for 100ms to 1h")}
			}
			return a.bench(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.keys, "keys", 1000, "how many keys are held and renewed beside the last measurement")
	flags.IntVar(&o.clients, "clients", 64, "how many goroutines lock at once")
	flags.DurationVar(&o.duration, "for", 8*time.Second, "how long to measure")
	flags.BoolVar(&o.anyway, "anyway", false, "measure also where more than 100 keys are in use")
	flags.BoolVar(&o.asJSON, "json", false, "print a JSON object")
	return cmd
}

// A measurement is one line of what bench prints. Fields may be added, never renamed or removed.
type measurement struct {
	Name      string  `json:"name"`
	Count     int     `json:"count"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
}

// bench measures, and gives back all keys also if a signal ends it.
func (a *app) bench(ctx context.Context, o benchOptions) error {
	ctx, stop := signal.NotifyContext(ctx, notIgnored([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP})...)
	defer stop()
	locks, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer locks.close()
	other, err := a.connect(ctx) // to which keys pass
	if err != nil {
		return err
	}
	defer other.close()
	if err := refuseBusy(ctx, locks, o); err != nil {
		return err
	}
	b := bench{benchOptions: o, locks: locks.Client, other: other.Client, prefix: "asynclock-bench/" + uuid.NewString() + "/"}
	all, err := b.run(ctx)
	switch {
	case ctx.Err() != nil:
		return &exitError{exitSignal + int(syscall.SIGINT), errors.New("interrupted")}
	case err != nil:
		return err
	case o.asJSON:
		return printJSON(a.stdout, struct {
			Measurements []measurement `json:"measurements"`
		}{all})
	}
	return printMeasurements(a.stdout, all)
}

// refuseBusy returns an error if others use many keys. It looks at no more keys than that takes.
func refuseBusy(ctx context.Context, locks *connection, o benchOptions) error {
	if o.anyway {
		return nil
	}
	found := 0
	for _, err := range locks.List(ctx, "") {
		if errors.Is(err, asynclock.ErrForeignData) {
			continue
		}
		if err != nil {
			return err
		}
		if found++; found > busyKeys {
			return &exitError{exitHeld, fmt.Errorf("more than %d keys are in use here; to put load on this server all the same, give --anyway", busyKeys)}
		}
	}
	return nil
}

func printMeasurements(out io.Writer, all []measurement) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tCOUNT\tA SECOND\tP50\tP99\t")
	for _, m := range all {
		fmt.Fprintf(table, "%s\t%d\t%.0f\t%s\t%s\t\n", m.Name, m.Count, m.PerSecond, micros(m.P50), micros(m.P99))
	}
	return table.Flush()
}

// micros formats a number of microseconds.
func micros(us float64) string {
	return strings.Replace(time.Duration(us*float64(time.Microsecond)).Round(time.Microsecond).String(), "µs", "us", 1)
}
