// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
)

// completionPatience bounds how long pressing Tab may take.
const completionPatience = 2 * time.Second

// oneKey checks the arguments of what is about a key.
func oneKey(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one KEY")
	}
	return nil
}

// keyAndCommand checks the arguments of what runs a command. Without the -- a flag behind KEY could be ours or
// the command's.
func keyAndCommand(cmd *cobra.Command, args []string) error {
	if len(args) < 2 || cmd.ArgsLenAtDash() != 1 {
		return errors.New("give one KEY, and after -- the command to run")
	}
	return nil
}

// completeKeyAndCommand completes to the keys that are in use, and after KEY to what the shell knows.
func (a *app) completeKeyAndCommand(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return a.completeKey(cmd, args, prefix)
}

// completeKey completes to the keys that are in use.
func (a *app) completeKey(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(ctx context.Context, locks *connection) (keys []cobra.Completion, err error) {
		infos, err := list(ctx, locks, prefix)
		for _, info := range infos {
			keys = append(keys, info.Key)
		}
		return keys, err
	})
}

// complete completes to what find finds on the server, and to nothing if that fails.
func (a *app) complete(cmd *cobra.Command, find func(context.Context, *connection) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	locks, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer locks.close()
	found, err := find(ctx, locks)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
