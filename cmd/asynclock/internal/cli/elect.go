// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
)

type electOptions struct {
	key    string
	holder string
	value  string
	ttl    time.Duration
	grace  time.Duration
}

func (a *app) electCommand() *cobra.Command {
	o := electOptions{}
	cmd := &cobra.Command{
		Use:   "elect KEY [flags] -- COMMAND [ARG...]",
		Short: "Run a command on one of several hosts, again after each loss",
		Long: `elect campaigns for the leadership of KEY and runs a command while it leads. If the
leadership is lost, the command is ended as by 'asynclock run', and elect
campaigns again. If the command ends by itself, elect gives the leadership on
and exits with the command's exit code. An outage of the server ends the
leadership, and not the campaign.

The command gets the same environment variables as under 'asynclock run';
ASYNCLOCK_TOKEN is the number of the term. 'asynclock inspect KEY' shows who
leads.
` + environmentHelp + exitCodesHelp,
		Example: `  # One of several hosts schedules. If it dies, another one does, after the TTL.
  asynclock elect scheduler -- /usr/local/bin/scheduler

  # The same, with an address that observers of the Go package elect see.
  asynclock elect scheduler --value 10.0.0.7:8080 -- /usr/local/bin/scheduler

  # Others lead within five seconds after this host has died.
  asynclock elect scheduler --ttl 5s -- /usr/local/bin/scheduler`,
		Args:              keyAndCommand,
		ValidArgsFunction: a.completeKeyAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGrace(cmd, &o.grace, o.ttl); err != nil {
				return err
			}
			o.key = args[0]
			return a.elect(cmd.Context(), o, args[1:])
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.ttl, "ttl", asynclock.DefaultTTL,
		"how long others wait if this host dies, and how long a server outage the leadership survives")
	addGrace(cmd, &o.grace)
	flags.StringVar(&o.value, "value", "", "what observers of the Go package elect see of this leader, for example an address")
	flags.StringVar(&o.holder, "holder", "", "description of the leader that others see; default command, host and pid")
	return cmd
}

// elect runs the command under one term after another.
func (a *app) elect(ctx context.Context, o electOptions, command []string) error {
	path, err := lookPath(command[0])
	if err != nil {
		return err
	}
	signals, stop := handleSignals()
	defer stop()
	holding := holdOptions{holder: o.holder, ttl: o.ttl}
	settings := holding.settings(command[0])
	locks, err := interruptible(ctx, signals, o.key, func(ctx context.Context) (*connection, error) {
		return a.connect(ctx, settings...)
	}, (*connection).close)
	if err != nil {
		return err
	}
	defer locks.close()
	campaign, end := context.WithCancel(ctx)
	defer end()
	terms := elect.Campaign(campaign, locks.Client, o.key, elect.WithValue([]byte(o.value)))
	for {
		term, err := interruptible(ctx, signals, o.key, func(ctx context.Context) (*elect.Term, error) {
			return nextTerm(ctx, terms)
		}, func(term *elect.Term) { _ = term.Resign(context.WithoutCancel(ctx)) })
		if err != nil {
			return err
		}
		restore := ignoreStops() // until we hold nothing
		result := a.supervise(ctx, a.command(path, command, term.Lease), term.Lease, o.grace, signals)
		lost := errors.Is(term.Err(), asynclock.ErrLost)
		if err := term.Resign(context.WithoutCancel(ctx)); err != nil && !lost {
			a.complain("%v; others lead when its TTL has passed", err)
		}
		restore()
		if !lost || ctx.Err() != nil {
			return result
		}
		a.complain("campaigning for %q again", o.key)
	}
}

// nextTerm waits for the next term of a campaign.
func nextTerm(ctx context.Context, terms <-chan elect.Elected) (*elect.Term, error) {
	select {
	case elected, open := <-terms:
		if open {
			return elected.Term()
		}
	case <-ctx.Done():
	}
	return nil, context.Canceled
}
