// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/demo"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// workerName is the hidden command that the demo's processes run.
const workerName = "demo-worker"

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the lock at work, with nothing installed",
		Long: `demo starts a Redis embedded in this program and several processes that increment
a number in an unprotected file: first without a lock, then with one. Then it
kills a holder, and pauses another one for longer than its TTL. It takes about
ten seconds, needs nothing installed and leaves nothing behind.

It exits with 1 if an update made under the lock was lost, or if a stale token
was accepted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			// The processes and files must be removed first, whatever ends this process. One cause
			// is a broken pipe: asynclock demo | head.
			ctx, stop := signal.NotifyContext(cmd.Context(), notIgnored([]os.Signal{
				os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE,
			})...)
			defer stop()
			err = demo.Run(ctx, demo.Options{Command: []string{program, workerName}, Out: a.stdout})
			if ctx.Err() != nil {
				return &exitError{code: exitSignal + int(syscall.SIGINT), err: errors.New("interrupted")}
			}
			return err
		},
	}
}

func (a *app) workerCommand() *cobra.Command {
	var (
		counter, ledger, holder string
		ttl                     time.Duration
	)
	cmd := &cobra.Command{
		Use:    workerName,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := rueidis.ParseURL(a.url) // the demo's own
			if err != nil {
				return err
			}
			server.ForceSingleClient = true // otherwise miniredis would be used as a Cluster
			st, err := redisstore.Open(server, redisstore.WithoutLogger())
			if err != nil {
				return err
			}
			locks, err := a.client(st, asynclock.WithTTL(ttl), asynclock.WithDescription(holder))
			if err != nil {
				return err
			}
			defer locks.close()
			return demo.Work(cmd.Context(), locks.Client, counter, ledger, a.stdin, a.stdout)
		},
	}
	cmd.Flags().StringVar(&counter, "counter", "", "path of the counter")
	cmd.Flags().StringVar(&ledger, "ledger", "", "URL of the ledger")
	cmd.Flags().StringVar(&holder, "holder", "", "what the worker calls itself")
	cmd.Flags().DurationVar(&ttl, "ttl", asynclock.DefaultTTL, "TTL of the lock")
	return cmd
}
