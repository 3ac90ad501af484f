// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// guardName is the hidden command that run starts beside its own.
const guardName = "run-guard"

// guardCommand waits until the process that started it has gone, and then kills the group of the
// given command. If the command has ended, the starter kills the guard instead.
func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    guardName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			// A signal to all processes of a service, for example, would end this process before
			// those that it has to kill.
			signal.Ignore(slices.Concat(forwarded, stops)...)
			text, err := io.ReadAll(a.stdin)
			if err != nil {
				return err
			}
			leader, err := groupLeader(string(text))
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			return proc.Kill(leader)
		},
	}
}

// groupLeader returns the process whose id is in text. The process may have ended.
func groupLeader(text string) (*os.Process, error) {
	pid, err := strconv.Atoi(strings.TrimSuffix(text, "\n"))
	if err != nil || pid <= 1 { // 1 and less would mean more than one group
		return nil, errors.New(guardName + " is for run to start")
	}
	return os.FindProcess(pid)
}
