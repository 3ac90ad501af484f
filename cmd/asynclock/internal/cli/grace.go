// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/anystore"
)

const graceHelp = `After a restart or a failover Redis grants no key for a TTL or so, because it may
have forgotten who holds which: that time is the grace. grace shows it for each
server: since when, until when, why, the ids of the server's history before and
now, and the longest TTL behind it. It also shows what can be known about whether
anything was lost. It changes nothing, and exits with 0 whether there is a grace
or not.

With --json, one object per server, always with these fields:
  history, before  the ids of its replication history, now and before
  why              started, promoted, moved, clock set back or unknown
  since, until     by the server's clock; empty if it has not begun anywhere
  left_ms          until then, or how long it lasts from the first request on
  longest_ttl_ms   the longest TTL of a lease that may be forgotten
  parts            how many parts of the keys the server has
  waiting          in how many of them nothing is granted
  unused           in how many that begins with the next request
  proven           whether it is proven that nothing was lost
  evidence         what that rests on: findings, as those of doctor
`

func (a *app) graceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grace",
		Short: "Show why Redis grants nothing after a restart or a failover",
		Long:  graceHelp,
		Example: `  # Why is nothing granted, and for how long?
  asynclock grace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withGraces(cmd.Context(), func(_ store.GraceStore, graces []store.Grace) error {
				if a.asJSON {
					return printGracesJSON(a.stdout, graces)
				}
				return printGraces(a.stdout, graces)
			})
		},
	}
	a.addJSON(cmd, "server")
	cmd.AddCommand(a.graceEndCommand())
	return cmd
}

// withGraces opens the store and asks for its graces. Those of servers that don't answer are missing, and an error.
func (a *app) withGraces(ctx context.Context, use func(store.GraceStore, []store.Grace) error) error {
	st, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	graces, err := st.Graces(ctx)
	if err != nil && len(graces) == 0 {
		return err
	}
	return errors.Join(use(st, graces), err)
}

var _ store.GraceStore = (*anystore.Store)(nil)

const graceEndHelp = `grace end ends a grace before its time: keys are granted again, and who waits is
told. It ends the grace of the server with this HISTORY, as 'asynclock grace'
shows it; the first eight characters are enough. If the server was replaced
meanwhile, it ends nothing. Without HISTORY it shows the grace and asks for the
id, on a terminal.

It does so only if it is proven that nothing was lost: the server that was primary
before follows the new one, was not ahead of it, and has the same clock. That is so
after CLUSTER FAILOVER, a coordinated failover of Valkey's Sentinel, or if you keep
writers away while Sentinel fails over; docs/maintenance.md has the commands. A
plain SENTINEL FAILOVER loses what is written meanwhile.

--i-know-that-nothing-was-lost ends it without proof, for example after a clean
restart with an append-only file. You say then, too, that the server's clock is
not ahead of the one before. If that is wrong, two clients may hold one key. It is
about one history before: if 'asynclock grace' shows several for the server, say
which by --before.

A proof does not cover a server that was primary in between, an old primary that
was made a replica by hand before the promotion, and what was written around
replication. 'asynclock grace' says so, and you have to know.

With --json: history, before, ended and unproven (parts of the keys), left_ms (of a
grace that the history before had of its own) and woken (waiters that were told).
`

func (a *app) graceEndCommand() *cobra.Command {
	var o graceEndOptions
	cmd := &cobra.Command{
		Use:   "end [HISTORY]",
		Short: "End a grace, because nothing was lost",
		Long:  graceEndHelp,
		Example: `  # After a planned failover: look, and end the grace that was looked at.
  asynclock grace
  asynclock grace end 9f3c71d0`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeHistory,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.history = args[0]
			} else if !a.onTerminal() {
				return &exitError{code: exitUsage, err: errors.New("nobody can be asked, as stdin is no terminal: give the HISTORY that 'asynclock grace' shows")}
			}
			return a.withGraces(cmd.Context(), func(st store.GraceStore, graces []store.Grace) error {
				return a.endGraces(cmd.Context(), o, st, graces)
			})
		},
	}
	cmd.Flags().BoolVar(&o.nothingLost, "i-know-that-nothing-was-lost", false, "end it without proof: if that is wrong, two clients may hold one key")
	cmd.Flags().StringVar(&o.before, "before", "", "end it only where the history before has this `ID`, or begins so")
	a.addJSON(cmd, "")
	return cmd
}

type graceEndOptions struct {
	history, before string // how they begin
	nothingLost     bool
}

// leastID is how many characters of an id say which is meant.
const leastID = 8

// begins reports whether an id begins so.
func begins(id, start string) bool {
	return id == start || len(start) >= leastID && strings.HasPrefix(id, start)
}

// endGraces ends the graces that are meant: of one server, and mostly one.
func (a *app) endGraces(ctx context.Context, o graceEndOptions, st store.GraceStore, graces []store.Grace) error {
	if len(graces) == 0 {
		a.complain("no server has a grace; nothing was ended")
		return nil
	}
	if o.history == "" {
		if err := printGraces(a.messages, graces); err != nil {
			return err
		}
		answer, err := a.ask(ctx, "The first eight characters, or all, of the history whose grace is to end: ")
		if err != nil {
			return err
		}
		o.history = answer
	}
	graces, err := o.choose(graces)
	if err != nil {
		return err
	}
	for _, g := range graces {
		err = errors.Join(err, a.endGrace(ctx, st, store.GraceEnd{History: g.History, Before: g.Before, NothingLost: o.nothingLost}))
	}
	return err
}

// choose returns the graces that are meant.
func (o graceEndOptions) choose(graces []store.Grace) (chosen []store.Grace, err error) {
	for _, g := range graces {
		if begins(g.History, o.history) && (o.before == "" || begins(g.Before, o.before)) {
			chosen = append(chosen, g)
		}
	}
	switch {
	case len(chosen) == 0:
		return nil, &exitError{code: exitHeld, err: fmt.Errorf("there is no grace of history %s; nothing was ended", plain.Text(o.history))}
	case slices.ContainsFunc(chosen, func(g store.Grace) bool { return g.History != chosen[0].History }):
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("more than one history begins with %s", plain.Text(o.history))}
	case o.nothingLost && len(chosen) > 1:
		return nil, &exitError{code: exitUsage, err: errors.New("parts of the keys have different histories before: say by --before of which one you know that nothing was lost")}
	}
	return chosen, nil
}

func (a *app) endGrace(ctx context.Context, st store.GraceStore, end store.GraceEnd) error {
	ended, err := st.EndGrace(ctx, end)
	if ended.Ended > 0 || err == nil {
		if a.asJSON {
			return errors.Join(printJSON(a.stdout, graceEndedJSON{end.History, end.Before, ended.Ended, ended.Unproven, ended.Left.Milliseconds(), ended.Woken}), err)
		}
		return errors.Join(printGraceEnded(a.stdout, end.History, ended), err)
	}
	return fmt.Errorf("%w; nothing was ended, see 'asynclock grace'", err)
}

// completeHistory completes to the histories that have a grace.
func (a *app) completeHistory(cmd *cobra.Command, args []string, _ string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = a.withGraces(cmd.Context(), func(_ store.GraceStore, graces []store.Grace) error { // without them there is nothing to complete
		for _, g := range graces {
			all = append(all, cobra.CompletionWithDesc(g.History, g.Why.String()))
		}
		return nil
	})
	slices.Sort(all)
	all = slices.Compact(all)
	return all, cobra.ShellCompDirectiveNoFileComp
}

type (
	graceJSON struct {
		History  string           `json:"history"`
		Before   string           `json:"before"`
		Why      string           `json:"why"`
		Since    string           `json:"since"`
		Until    string           `json:"until"`
		LeftMS   int64            `json:"left_ms"`
		TTLMS    int64            `json:"longest_ttl_ms"`
		Parts    int              `json:"parts"`
		Waiting  int              `json:"waiting"`
		Unused   int              `json:"unused"`
		Proven   bool             `json:"proven"`
		Evidence []doctor.Finding `json:"evidence"`
	}
	graceEndedJSON struct {
		History  string `json:"history"`
		Before   string `json:"before"`
		Ended    int    `json:"ended"`
		Unproven int    `json:"unproven"`
		LeftMS   int64  `json:"left_ms"`
		Woken    int    `json:"woken"`
	}
)

func printGracesJSON(out io.Writer, graces []store.Grace) error {
	for _, g := range graces {
		err := printJSON(out, graceJSON{
			g.History, g.Before, g.Why.String(), stamp(g.Since), stamp(g.Until), g.Left.Milliseconds(), g.Longest.Milliseconds(),
			g.Parts, g.Waiting, g.Unused, g.Proven, g.Evidence,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// printGraces prints what is known of each grace, for people.
func printGraces(out io.Writer, graces []store.Grace) error {
	if len(graces) == 0 {
		_, err := fmt.Fprintln(out, "Keys are granted: no server has a grace.")
		return err
	}
	for i, g := range graces {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printGrace(out, &g); err != nil {
			return err
		}
		if err := printFindings(out, g.Evidence); err != nil {
			return err
		}
		hint := "To end it: asynclock grace end " + g.History[:min(leastID, len(g.History))]
		if !g.Proven {
			hint = "Nothing is proven. If you know that nothing was lost: asynclock grace end --help"
		}
		if _, err := fmt.Fprintln(out, hint); err != nil {
			return err
		}
	}
	return nil
}

func printGrace(out io.Writer, g *store.Grace) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "history\t%s\n", g.History)
	before := g.Before
	if before == "" {
		before = "not known, or there was none"
	}
	fmt.Fprintf(table, "before\t%s\n", before)
	fmt.Fprintf(table, "why\t%s\n", g.Why)
	if g.Waiting > 0 {
		if !g.Since.IsZero() {
			fmt.Fprintf(table, "since\t%s\n", plain.Stamp(g.Since))
		}
		fmt.Fprintf(table, "until\t%s, for %s\n", plain.Stamp(g.Until), plain.Seconds(g.Left))
	} else {
		fmt.Fprintf(table, "until\t%s after the first request\n", plain.Seconds(g.Left))
	}
	fmt.Fprintf(table, "longest TTL\t%s\n", plain.Seconds(g.Longest))
	fmt.Fprintf(table, "keys\t%d parts: nothing is granted in %d, and from the next request on in %d\n", g.Parts, g.Waiting, g.Unused)
	return table.Flush()
}

func printGraceEnded(out io.Writer, history string, ended store.GraceEnded) error {
	left := ""
	if ended.Left > 0 {
		left = fmt.Sprintf("; the history before had a grace of its own, of which %s are left", plain.Seconds(ended.Left))
	}
	_, err := fmt.Fprintf(out, "%s: ended in %d parts of the keys; waiters told: %d%s\n", history[:min(leastID, len(history))], ended.Ended, ended.Woken, left)
	return err
}
