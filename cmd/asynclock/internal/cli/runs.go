// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/once"
)

func (a *app) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs KEY",
		Short: "Show the last run of a job that runs once in an interval",
		Long: `runs shows the last run of a job of the Go package once, as its record beside the
key says. It exits with 0 whether there was a run or not.

With --json, always these fields:
  key         the key
  start       of the interval; empty if no run is known, as are the other times
  began       when the run began, by the server's clock
  ended       when it ended; empty if it runs, or was interrupted, or died
  by          the description of the process
  attempt     1, or more if earlier attempts in the interval have not ended
  missed      how many intervals had no run before this one
  failed      whether the job returned an error
  message     the beginning of the error's text
  token       the fencing token of the run
`,
		Example: `  # When did the job "report" run, where, and did it fail?
  asynclock runs report

  # For a monitor: exit with 1 unless the last run has ended without an error.
  asynclock runs --json report | jq -e '.ended != "" and (.failed | not)'`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			locks, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer locks.close()
			find := func() (once.RunInfo, error) { return once.LastRun(cmd.Context(), locks.Client, args[0]) }
			last, err := find()
			if err != nil {
				return err
			}
			if a.asJSON {
				return printJSON(a.stdout, newRunJSON(args[0], last))
			}
			ended := ""
			if !last.Start.IsZero() {
				ended = board.EndOf(cmd.Context(), locks, args[0], last, find)
			}
			return printRun(a.stdout, args[0], last, ended)
		},
	}
	a.addJSON(cmd, "")
	return cmd
}

type runJSON struct {
	Key     string `json:"key"`
	Start   string `json:"start"`
	Began   string `json:"began"`
	Ended   string `json:"ended"`
	By      string `json:"by"`
	Attempt int    `json:"attempt"`
	Missed  int    `json:"missed"`
	Failed  bool   `json:"failed"`
	Message string `json:"message"`
	Token   int64  `json:"token"`
}

func newRunJSON(key string, last once.RunInfo) runJSON {
	return runJSON{
		key, stamp(last.Start), stamp(last.Began), stamp(last.Ended), last.By,
		last.Attempt, last.Missed, last.Failed, last.Message, last.Token,
	}
}

// stamp formats a time; empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// printRun prints the last run, for people.
func printRun(out io.Writer, key string, last once.RunInfo, ended string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "key\t%s\n", plain.Text(key))
	if last.Start.IsZero() {
		fmt.Fprintln(table, "last run\tnone is known")
		return table.Flush()
	}
	fmt.Fprintf(table, "interval\t%s\n", plain.Stamp(last.Start))
	fmt.Fprintf(table, "began\t%s\n", plain.Stamp(last.Began))
	fmt.Fprintf(table, "ended\t%s\n", ended)
	fmt.Fprintf(table, "by\t%s\n", plain.Text(last.By))
	fmt.Fprintf(table, "attempt\t%d\n", last.Attempt)
	fmt.Fprintf(table, "missed\t%d\n", last.Missed)
	fmt.Fprintf(table, "token\t%d\n", last.Token)
	if last.Failed {
		fmt.Fprintf(table, "error\t%s\n", plain.Text(last.Message))
	}
	return table.Flush()
}
