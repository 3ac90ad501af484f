// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
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
says, four times a quarter, and as long as it takes to take and give back the
keys of 'renewing'. Its keys begin with asynclock-bench/ and are given back. A
store remembers the last token of each: Redis for an hour, or as counter_ttl
says, and that of Spring for a day. A database keeps a row of each for a day,
and deletes it then while others lock keys.

bench refuses to run where more than 100 keys are in use, unless --anyway is
given. Figures of one machine and one moment say little about another.

With --json: measurements, each with name, count, per_second, p50_us and p99_us.
`

type benchOptions struct {
	keys, clients int
	duration      time.Duration
	anyway        bool
}

func (a *app) benchCommand() *cobra.Command {
	o := benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure locks on your own server, which gets load",
		Long:  benchHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.keys < 1 || o.clients < 1 || o.keys > 10_000 || o.clients > 1000 || o.duration < 100*time.Millisecond || o.duration > time.Hour {
				return &exitError{code: exitUsage, err: errors.New("--keys is 1 to 10000, --clients 1 to 1000, and --for 100ms to 1h")}
			}
			return a.bench(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.keys, "keys", 1000, "how many keys are held and renewed beside the last measurement")
	flags.IntVar(&o.clients, "clients", 64, "how many goroutines lock at once")
	flags.DurationVar(&o.duration, "for", 8*time.Second, "how long to measure")
	flags.BoolVar(&o.anyway, "anyway", false, "measure also where more than 100 keys are in use")
	a.addJSON(cmd, "")
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

// bench measures, and gives back all keys also if a signal ends it. A second signal ends it at once.
func (a *app) bench(ctx context.Context, o benchOptions) error {
	ctx, interrupted := a.untilSignal(ctx)
	locks, err := a.connect(ctx)
	if err != nil {
		return interrupted(err)
	}
	defer locks.close()
	other, err := a.connect(ctx) // to which keys pass
	if err != nil {
		return interrupted(err)
	}
	defer other.close()
	if err := refuseBusy(ctx, locks, o); err != nil {
		return interrupted(err)
	}
	b := bench{benchOptions: o, locks: locks.Client, other: other.Client, prefix: "asynclock-bench/" + uuid.NewString() + "/"}
	all, err := b.run(ctx)
	show := printMeasurements
	if a.asJSON {
		show = printMeasurementsJSON
	}
	if len(all) > 0 && ctx.Err() == nil {
		err = errors.Join(show(a.stdout, all), err)
	}
	return interrupted(err)
}

// untilSignal returns a context that ends with a signal that ends us, and what makes its error of the one that this has
// caused.
func (a *app) untilSignal(ctx context.Context) (context.Context, func(error) error) {
	ctx, end := context.WithCancelCause(ctx)
	signals, stop := handleSignals()
	go func() { // ends with ctx
		for {
			select {
			case s := <-signals:
				if number, ok := s.(syscall.Signal); ok && endsUs(s) {
					end(&exitError{code: exitSignal + int(number), err: errors.New("interrupted")})
				}
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				stop()
				return
			}
		}
	}()
	return ctx, func(err error) error {
		caused, exit := context.Cause(ctx), (*exitError)(nil)
		end(nil)
		switch {
		case errors.As(caused, &exit):
			return exit
		case caused != nil && err != nil:
			return caused // and not what stood in its way
		}
		return err
	}
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
			return &exitError{code: exitHeld, err: fmt.Errorf("more than %d keys are in use here; to put load on this server all the same, give --anyway", busyKeys)}
		}
	}
	return nil
}

func printMeasurementsJSON(out io.Writer, all []measurement) error {
	return printJSON(out, struct {
		Measurements []measurement `json:"measurements"`
	}{all})
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
