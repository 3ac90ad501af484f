// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

const findingsHelp = `
A line is a verdict, what was checked, and the fact. A line below it may say what
to do. The verdicts:
  ok    as it should be
  note  worth knowing
  warn  locks work, and may be lost, be slow, or not survive a fault
  fail  locks don't work, or exclude nobody
The exit code is 0, but 1 if there is a warn, and 2 if there is a fail.

With --json, one JSON object per line, always with these fields. Fields may be
added, never renamed or removed:
  check    what was checked, such as server or messages
  verdict  ok, note, warn or fail
  fact     what is the case
  fix      what to do about it; empty if there is nothing to do
`

func (a *app) doctorCommand() *cobra.Command {
	ttl := store.DefaultTTL
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether the server is fit for locks",
		Long: `doctor finds out whether the server is fit for locks. It measures how fast the
server answers, takes a key with a random name, has another client wait for it,
and gives it back. It looks at how the server is set up, as far as this user may
see that, and at the keys that are in use. It changes none of them. It takes a
few seconds, and half a minute at most.
` + findingsHelp,
		Example: `  # Is the server fit for locks?
  asynclock doctor

  # The same, for clients that use a TTL of a minute.
  asynclock doctor --ttl 1m

  # What has to be done?
  asynclock doctor --json | jq -r 'select(.fix != "").fix'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.diagnose(cmd.Context(), func(ctx context.Context, st store.Store) ([]doctor.Finding, error) {
				return doctor.Check(ctx, st, doctor.WithTTL(ttl))
			})
		},
	}
	a.addJSON(cmd, "finding")
	cmd.Flags().DurationVar(&ttl, "ttl", ttl, "the `TTL` that the clients use: a server may be too slow for a short one")
	return cmd
}

func (a *app) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why KEY",
		Short: "Find out why a wait for a key takes long",
		Long: `why finds out why a wait for a key takes long: who holds the key, whether that
holder renews it, how many wait, and whether the server grants anything at
present. It looks at the key until the holder has renewed it, or should have, for
nine seconds at most, and does not touch it. It exits with 0 also if the key is
held, and with 1 if others wait and its holder seems dead.
` + findingsHelp,
		Example: `  # Why does the deployment not begin?
  asynclock why deploy`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diagnose(cmd.Context(), func(ctx context.Context, st store.Store) ([]doctor.Finding, error) {
				return doctor.Why(ctx, st, args[0])
			})
		},
	}
	a.addJSON(cmd, "finding")
	return cmd
}

// diagnose prints what examine finds, and exits as the worst verdict says. A store that can't be opened is a finding, too.
func (a *app) diagnose(ctx context.Context, examine func(context.Context, store.Store) ([]doctor.Finding, error)) error {
	findings, err := a.examine(ctx, examine)
	if a.asJSON {
		for _, f := range findings {
			err = errors.Join(err, printJSON(a.stdout, f))
		}
	} else {
		err = errors.Join(err, printFindings(a.stdout, findings))
	}
	if err != nil {
		return err
	}
	switch doctor.Worst(findings) {
	case doctor.Warn:
		return &exitError{code: exitWarn}
	case doctor.Fail:
		return &exitError{code: exitFail}
	}
	return nil
}

// slowOpening is how long no store takes to open, except one whose server was silent.
const slowOpening = time.Second

func (a *app) examine(ctx context.Context, examine func(context.Context, store.Store) ([]doctor.Finding, error)) ([]doctor.Finding, error) {
	begin := time.Now()
	st, err := a.openStore(ctx)
	switch exit := (*exitError)(nil); {
	case errors.As(err, &exit), errors.Is(err, asynclock.ErrInvalidOption):
		return nil, err // the command line is wrong
	case err != nil:
		found := doctor.Unopened(err)
		if errors.As(err, new(*sqlstore.SchemaError)) {
			found.Fix = "Run 'asynclock migrate', which makes and updates tables."
		}
		return []doctor.Finding{found}, ctx.Err()
	}
	defer st.Close()
	opened := time.Since(begin)
	findings, err := examine(ctx, st)
	if opened >= slowOpening { // what was found may be of a server that has recovered meanwhile
		findings = slices.Insert(findings, 0, doctor.Finding{
			Check: "server", Verdict: doctor.Warn, Fact: "The store took " + plain.Seconds(opened) + " to open.",
			Fix: "Find out whether the server was silent for so long, or whether connections open so slowly; then repeat this.",
		})
	}
	return findings, err
}

// printFindings prints a line per finding, for people, and one below it if there is something to do.
func printFindings(out io.Writer, findings []doctor.Finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(plain.Text(f.Check)))
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(out, "%-4v  %-*s  %s\n", f.Verdict, width, plain.Text(f.Check), plain.Text(f.Fact)); err != nil {
			return err
		}
		if f.Fix != "" {
			fmt.Fprintf(out, "%*sfix: %s\n", len("warn")+2+width+2, "", plain.Text(f.Fix))
		}
	}
	return nil
}
