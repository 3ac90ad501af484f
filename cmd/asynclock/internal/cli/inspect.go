// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

func (a *app) lsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the keys that are held or waited for",
		Long: `ls lists the keys that are held or waited for, sorted by key. With PREFIX it lists
only keys with that prefix. It reads the server page by page and does not block it.
Keys that come or go meanwhile may or may not be in the list.
` + infoFieldsHelp,
		Example: `  # All orders that are locked.
  asynclock ls orders/

  # The keys for which more than ten clients wait.
  asynclock ls --json | jq -r 'select(.waiters > 10).key'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			locks, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer locks.close()
			infos, err := list(cmd.Context(), locks, strings.Join(args, ""))
			if name := cmd.Flags().Lookup("prefix"); err == nil && len(infos) == 0 && name.Changed {
				a.complain("no locks under the name %q, which --prefix gives; keys that begin so: asynclock ls %s", a.prefix, a.prefix)
			}
			switch {
			case err != nil && len(infos) == 0:
				return err
			// Results from before an error are still worth showing.
			case a.asJSON:
				return errors.Join(err, printJSONLines(a.stdout, infos))
			default:
				return errors.Join(err, printTable(a.stdout, infos))
			}
		},
	}
	a.addJSON(cmd, "key")
	return cmd
}

// list returns the results of List, sorted by key, each key once.
func list(ctx context.Context, locks *connection, prefix string) ([]asynclock.Info, error) {
	var infos []asynclock.Info
	var failed error
	for info, err := range locks.List(ctx, prefix) {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		infos = append(infos, info)
	}
	slices.SortStableFunc(infos, func(a, b asynclock.Info) int { return cmp.Compare(a.Key, b.Key) })
	infos = slices.CompactFunc(infos, func(a, b asynclock.Info) bool { return a.Key == b.Key })
	return infos, failed
}

func (a *app) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect KEY",
		Short: "Show who holds a key and who waits for it",
		Long: `inspect shows who holds a key and who waits for it, the first few in their order.
It exits with 0 whether the key is held or not.
` + infoFieldsHelp + `  stored_limit  inspect only: the number that 'asynclock permits' has set; 0: none
  holders       inspect only: the first that share the key, each with holder, token,
                weight (of permits) and remaining_ms
  queue         inspect only: the first waiting clients, each with holder (as above)
                and age_ms, the time since it queued
`,
		Example: `  # Who holds the key, and who waits for it?
  asynclock inspect orders/42

  # The fencing token of the holder.
  asynclock inspect --json orders/42 | jq .token`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			locks, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer locks.close()
			info, err := locks.Inspect(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return printJSON(a.stdout, newInspectJSON(info))
			}
			return printInfo(a.stdout, info)
		},
	}
	a.addJSON(cmd, "")
	return cmd
}
