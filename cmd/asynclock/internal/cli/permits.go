// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

const permitsHelp = `permits sets how many permits a key has, for all programs that use it and
whatever they believe. The number lasts until it is set again. With 0 it is
forgotten, and each program's own number counts again.

A larger number serves waiters at once. A smaller one takes nothing from anyone:
nothing is granted until enough was given back. 'asynclock inspect' shows the
number and who has permits.
`

func (a *app) permitsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "permits KEY N",
		Short: "Set how many permits a key has",
		Long:  permitsHelp,
		Example: `  # At most two reports at a time, until this is set again.
  asynclock permits reports 2

  # From now on each program's own number counts again.
  asynclock permits reports 0`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("give KEY and N")
			}
			return nil
		},
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return &exitError{code: exitUsage, err: fmt.Errorf("%q is no number of permits", args[1])}
			}
			return a.setPermits(cmd.Context(), args[0], n)
		},
	}
}

func (a *app) setPermits(ctx context.Context, key string, n int) error {
	locks, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer locks.close()
	s, err := locks.Semaphore(key, asynclock.MaxPermits)
	if err != nil {
		return err
	}
	return s.SetPermits(ctx, n)
}
