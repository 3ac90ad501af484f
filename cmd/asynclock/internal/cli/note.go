// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/plain"
)

const noteHelp = `note prints the note that the holder of a key has left beside it, for example
the address of a leader: the --value of 'asynclock elect', the --note of run and
hold, or the value of the Go package elect. A note is as old as its writer: it
promises nothing about now.

If nobody holds the key, or its holder has left no note, note says so and exits
with 75. The note of an earlier holder does not count.

With --follow it prints a line for the note as it is, and for each change of the
holder or the note that it sees. It ends by a signal, or if nobody reads stdout
any more. An empty line means that there is no note. Changes that are announced,
as elect and --note do, are seen at once, and others within 15 s. An outage of
the server ends nothing.

With --json, always these fields, also if there is no note:
  key     the key
  held    whether anyone holds it, all of it
  holder  the holder's description of itself; empty if there is none
  token   the holder's fencing token; 0 if there is none
  note    the note; empty if there is none
`

// A noteJSON is the note of a holder. Fields may be added, never renamed or removed.
type noteJSON struct {
	Key    string `json:"key"`
	Held   bool   `json:"held"`
	Holder string `json:"holder"`
	Token  int64  `json:"token"`
	Note   string `json:"note"`
}

func (a *app) noteCommand() *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use:   "note KEY [flags]",
		Short: "Print the note of a key's holder, as the address of a leader",
		Long:  noteHelp,
		Example: `  # The address of the leader.
  asynclock note scheduler

  # Whenever another leads.
  asynclock note scheduler --follow | while read -r address; do ...; done`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow {
				return a.follow(cmd.Context(), func(ctx context.Context, locks *connection) error {
					return a.followNote(ctx, locks, args[0])
				})
			}
			return a.note(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on, and print each change")
	a.addJSON(cmd, "")
	return cmd
}

// note prints the note as it is.
func (a *app) note(ctx context.Context, key string) error {
	locks, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer locks.close()
	leader, err := elect.Current(ctx, locks.Client, key)
	if err != nil {
		return err
	}
	none := len(leader.Value) == 0
	if !none || a.asJSON {
		err = a.printNote(leader)
	}
	switch {
	case err != nil || !none:
		return err
	case a.asJSON:
		return &exitError{code: exitHeld}
	case leader.Token == 0:
		return &exitError{code: exitHeld, err: fmt.Errorf("nobody holds %q", key)}
	}
	return &exitError{code: exitHeld, err: fmt.Errorf("%s, the holder of %q, has left no note", plain.Text(leader.Holder), key)}
}

// followNote prints the note whenever it has changed.
func (a *app) followNote(ctx context.Context, locks *connection, key string) error {
	if _, err := elect.Current(ctx, locks.Client, key); err != nil {
		return err // Observe would go on without a server
	}
	leaders, err := elect.Observe(ctx, locks.Client, key)
	if err != nil {
		return err
	}
	for {
		select {
		case leader, open := <-leaders:
			if !open {
				return errors.Join(ctx.Err(), errors.New("the note can't be read any more"))
			}
			if err := a.printNote(leader); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *app) printNote(leader elect.Leader) error {
	if a.asJSON {
		return printJSON(a.stdout, noteJSON{leader.Key, leader.Token != 0, leader.Holder, leader.Token, string(leader.Value)})
	}
	text := ""
	if len(leader.Value) > 0 {
		text = plain.Text(string(leader.Value))
	}
	_, err := fmt.Fprintln(a.stdout, text)
	return err
}
