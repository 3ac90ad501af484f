// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
)

const watchHelp = `watch prints a line for each change of a key: when, what, the key, its holder
and the fencing token. With PREFIX it watches only keys with that prefix.

It samples: it lists the keys every half second, or every --interval, and
compares. It misses what happens in between, as a key that is taken and freed.
Of several changes of a key it prints one, with the first name that applies:
  found    in the first list: the key is held or waited for
  taken    somebody has the key, and nobody had
  freed    nobody has it; the line names the holder and the token of before
  passed   another has it, or the same client again
  shares   other readers have a part of it, or other permits are out
  waiting  more or fewer wait for it

It ends by a signal, or if nobody reads stdout any more. An outage of the server
is said once on stderr; what has changed meanwhile is printed afterwards. A list
costs the server what 'asynclock ls' does.

With --json, a line is an object with the fields of 'asynclock ls --json', and:
  time              of the list, by the clock of this machine
  change            the name above
  previous_holder   of the list before; empty if there was none
  previous_token    likewise; 0 if there was none
  previous_waiters  likewise
  previous_used     likewise, of permits
`

const (
	// shortestInterval keeps watch from being a load.
	shortestInterval = 50 * time.Millisecond
	// listPatience is how long a list may take before that is said. It is not ended: the store asks again, and nobody
	// knows how many keys there are.
	listPatience = 3 * time.Second
)

// A changeJSON is a line of watch. Fields may be added, never renamed or removed.
type changeJSON struct {
	Time   string `json:"time"`
	Change string `json:"change"`
	infoJSON
	PreviousHolder  string `json:"previous_holder"`
	PreviousToken   int64  `json:"previous_token"`
	PreviousWaiters int    `json:"previous_waiters"`
	PreviousUsed    int    `json:"previous_used"`
}

func (a *app) watchCommand() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print a line when a key is taken, passed on or freed",
		Long:  watchHelp,
		Example: `  # Who takes and frees the locks of orders?
  asynclock watch orders/

  # Each key for which more than ten clients wait.
  asynclock watch --json | jq -r 'select(.waiters > 10).key'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < shortestInterval {
				return &exitError{code: exitUsage, err: fmt.Errorf("--interval is shorter than %v", shortestInterval)}
			}
			prefix := strings.Join(args, "")
			return a.follow(cmd.Context(), func(ctx context.Context, locks *connection) error {
				return a.watch(ctx, &board.Sampler{List: locks.List, Prefix: prefix}, interval)
			})
		},
	}
	a.addJSON(cmd, "change")
	cmd.Flags().DurationVar(&interval, "interval", 500*time.Millisecond, "how often to list the keys")
	return cmd
}

// watch prints the changes until ctx ends.
func (a *app) watch(ctx context.Context, s *board.Sampler, interval time.Duration) error {
	silence := outage{say: a.complain}
	for took := time.Duration(0); ; {
		before, begin := s.Last, time.Now()
		end := silence.overdue(listPatience + 2*took) // many keys take long each time
		now, keyErrors, err := s.Next(ctx)
		end()
		took = time.Since(begin)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, err := range keyErrors {
			a.complain("%v", err)
		}
		answered, err := silence.survive(err)
		if err != nil {
			return err
		}
		if answered {
			if err := a.printChanges(board.Compare(before, now)); err != nil {
				return err
			}
		}
		select {
		case <-time.After(max(interval-took, took)): // it is busy for half of the time at most
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *app) printChanges(changes []board.Change) error {
	at := time.Now()
	for _, c := range changes {
		var err error
		if a.asJSON {
			err = printJSON(a.stdout, changeJSON{
				at.Format(time.RFC3339Nano), string(c.Kind), newInfoJSON(c.After),
				c.Before.Holder, c.Before.Token, c.Before.Waiters, c.Before.Used,
			})
		} else {
			err = printChange(a.stdout, at, &c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printChange prints one line, for people.
func printChange(out io.Writer, at time.Time, c *board.Change) error {
	who := &c.After
	if c.Kind == board.Freed {
		who = &c.Before
	}
	line := fmt.Sprintf("%s  %-7s  %s", at.Format("15:04:05.000"), c.Kind, plain.Text(who.Key))
	if who.Held {
		line += fmt.Sprintf("  %s  token %d", plain.Text(who.Holder), who.Token)
	}
	if c.After.Mode == asynclock.Permits && c.After.Held {
		line += fmt.Sprintf("  %d of %d permits", c.After.Used, c.After.Limit)
	}
	switch {
	case c.Kind == board.Waiting:
		line += fmt.Sprintf("  %d waiting, %d before", c.After.Waiters, c.Before.Waiters)
	case c.After.Waiters > 0:
		line += fmt.Sprintf("  %d waiting", c.After.Waiters)
	}
	_, err := fmt.Fprintln(out, line)
	return err
}
