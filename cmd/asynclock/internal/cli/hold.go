// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/plain"
)

const holdHelp = `hold takes the lock on a key, as run does, and keeps it without a command. When
it has the key, it prints one line on stdout: its fencing token and the key.
With --json: key and token.

It holds the key until its stdin closes, or until it gets a signal. Then it
unlocks and exits with 0. What it reads is thrown away. With stdin from
/dev/null, as in the background of a script, it ends at once: give it a pipe.

If the lease is lost, hold says so and exits with 79. Whoever uses the key must
not continue then. 'asynclock run' makes sure of that, and hold does not: prefer
run. --max-hold is such a loss, too. A signal while hold waits for the key ends
it with 128+n.
`

// A holdJSON says what hold has taken. Fields may be added, never renamed or removed.
type holdJSON struct {
	Key   string `json:"key"`
	Token int64  `json:"token"`
}

func (a *app) holdCommand() *cobra.Command {
	var o holdOptions
	cmd := &cobra.Command{
		Use:   "hold KEY [flags]",
		Short: "Take a key, and hold it until stdin closes",
		Long:  holdHelp + environmentHelp + exitCodesHelp,
		Example: `  # Hold the key by hand; Ctrl-D gives it back.
  asynclock hold deploy/prod

  # Part of a bash script under the lock.
  coproc asynclock hold deploy/prod
  read -r token key <&"${COPROC[0]}" || exit 1
  ...
  eval "exec ${COPROC[1]}>&-"; wait "$COPROC_PID"`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			o.key = args[0]
			return a.hold(cmd.Context(), &o)
		},
	}
	o.addTo(cmd)
	a.addJSON(cmd, "")
	return cmd
}

// hold takes the key and keeps it for as long as it should.
func (a *app) hold(ctx context.Context, o *holdOptions) error {
	signals, stop := handleSignals()
	defer stop()
	locks, lease, err := a.take(ctx, o, "hold", signals)
	if err != nil {
		return err
	}
	defer locks.close()
	restore := ignoreStops() // a stopped process could not renew the lease
	defer restore()
	endNote := a.keepNote(lease, o.note)
	printed := make(chan error, 1)
	go func() { printed <- a.printHeld(lease) }() // ends with its reader, or with the process
	err = a.keep(ctx, lease, signals, printed)
	endNote()
	unlocked := lease.Unlock(context.WithoutCancel(ctx))
	switch {
	case errors.Is(unlocked, asynclock.ErrLost):
		return &exitError{code: exitLost, err: fmt.Errorf("%q: %s", o.key, strings.TrimPrefix(lease.Err().Error(), "asynclock: "))}
	case unlocked != nil:
		a.complain("%v; others get the key when its TTL has passed", unlocked)
	}
	return err
}

// printHeld says that the key was taken.
func (a *app) printHeld(lease *asynclock.Lease) error {
	if a.asJSON {
		return printJSON(a.stdout, holdJSON{lease.Key(), lease.Token()})
	}
	_, err := fmt.Fprintf(a.stdout, "%d %s\n", lease.Token(), plain.Text(lease.Key()))
	return err
}

// printPatience is how long the line about the key may take at the end.
const printPatience = 100 * time.Millisecond

// keep returns when the key is not to be held any longer, or the lease has ended. The line that says that it is held may
// wait for a reader for ever; an error of it comes back.
func (a *app) keep(ctx context.Context, lease *asynclock.Lease, signals <-chan os.Signal, printed <-chan error) error {
	closed := make(chan struct{})
	go func() { // ends with stdin, or with the process
		defer close(closed)
		_, _ = io.Copy(io.Discard, a.stdin) // one that can't be read is as good as closed
	}()
	for {
		select {
		case err := <-printed:
			if printed = nil; err == nil {
				continue
			}
			return err
		case <-closed:
		case <-lease.Done():
		case <-ctx.Done():
		case s := <-signals:
			if !endsUs(s) {
				continue
			}
		}
		if printed == nil {
			return nil
		}
		select {
		case err := <-printed:
			return err
		case <-time.After(printPatience):
			return nil
		}
	}
}
