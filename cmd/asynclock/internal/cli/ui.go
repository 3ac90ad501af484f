// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclockui"
)

const uiHelp = `ui serves a page that shows the keys that are held or waited for, live, as 'asynclock
top' does in a terminal, and prints its address. With PREFIX it shows only keys with
that prefix. It ends with Ctrl-C.

The page can be seen on this machine alone, and only by who knows the address, which
has a new secret each time. To see it from elsewhere, forward the port:

  ssh -L 8080:127.0.0.1:8080 host     and open the address that ui has printed there

An admin page of your own can have it, too: github.com/asynclock/asynclock-go/asynclockui.
`

type uiOptions struct {
	listen          string
	force           bool
	jobs, elections []string
	prefix          string
}

func (a *app) uiCommand() *cobra.Command {
	o := uiOptions{}
	cmd := &cobra.Command{
		Use:   "ui [PREFIX]",
		Short: "Serve a page that shows the keys that are held, live",
		Long:  uiHelp,
		Example: `  # All keys, on any free port.
  asynclock ui

  # The keys of orders, with who leads and the last run of a job.
  asynclock ui --listen 127.0.0.1:8080 --election scheduler --job report orders/`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.prefix = strings.Join(args, "")
			ctx, interrupted := a.untilSignal(cmd.Context())
			return interrupted(a.ui(ctx, &o))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "`ADDRESS` of this machine alone; with port 0 any that is free")
	flags.BoolVar(&o.force, "allow-unlock", false, "let who sees the page take a key from its holder; 'asynclock unlock --help' says what that means")
	flags.StringArrayVar(&o.jobs, "job", nil, "show the last run of the job with this `KEY`; can be repeated")
	flags.StringArrayVar(&o.elections, "election", nil, "show who leads in the election with this `KEY`; can be repeated")
	return cmd
}

// ui serves the page until ctx ends.
func (a *app) ui(ctx context.Context, o *uiOptions) error {
	listener, err := listenLocally(ctx, o.listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // serve closes it, too
	st, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	locks, err := a.client(st)
	if err != nil {
		return err
	}
	defer locks.close()
	options := []asynclockui.Option{
		asynclockui.WithPrefix(o.prefix), asynclockui.WithChecks(st), asynclockui.WithJobs(o.jobs...), asynclockui.WithElections(o.elections...),
		asynclockui.WithLogger(slog.New(slog.NewTextHandler(a.messages, nil))),
	}
	if o.force {
		options = append(options, asynclockui.WithForceUnlock())
	}
	d := newDoor()
	page, err := asynclockui.Handler(locks.Client, d.isOpen, options...)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.stdout, "http://%s%s\n", listener.Addr(), d.address()); err != nil {
		return err
	}
	return serve(ctx, listener, d.before(page))
}

// errNotHere: who gives another address wants others to see the page.
var errNotHere = errors.New("ui listens on this machine alone, on 127.0.0.1, [::1] or localhost; forward a port to see it from elsewhere")

// listenLocally listens on an address of this machine that no other machine can reach.
func listenLocally(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("--listen: %w", err)}
	}
	if !isLoopback(host) {
		return nil, &exitError{code: exitUsage, err: errNotHere}
	}
	if net.ParseIP(host) == nil { // the name may be that of another address
		host = "127.0.0.1"
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// Limits of the server. The page allows more where it needs more.
const (
	headerTime = 10 * time.Second
	answerTime = 30 * time.Second
	idleTime   = 2 * time.Minute
)

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTime, ReadTimeout: answerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that streams end
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		if server.Shutdown(patience) != nil {
			_ = server.Close() // some answers are not complete
		}
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-stopped
	return ctx.Err()
}
