// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

const waitHelp = `wait waits until nobody has the key, or with --held until somebody has it. Then
it exits with 0, and with 124 if that takes longer than --timeout.

It only looks: it takes nothing, does not queue and disturbs nobody. A key is
free if nobody has it or a part of it, as a reader or with permits, and nobody
waits for it. It may be taken again before wait has ended, so use
'asynclock run' for work that needs the key.

wait looks at least once a second, and sooner when a TTL ends. With --held it
looks four times a second. It misses what happens between two looks. A holder
that announces itself and its end is noticed at once: a leader of
'asynclock elect', or whoever gives --note.

An outage of the server is said once on stderr, and wait goes on. If the server
can't be reached at the first look, it exits with 69. A server that has lost its
data does not know who has the key.
`

type waitOptions struct {
	free, held bool
	timeout    waitLimit
}

func (a *app) waitCommand() *cobra.Command {
	o := waitOptions{timeout: forever}
	cmd := &cobra.Command{
		Use:   "wait KEY [flags]",
		Short: "Wait until a key is free, or held",
		Long:  waitHelp,
		Example: `  # Stop the server when the deployment is over, but wait ten minutes at most.
  asynclock wait deploy/prod --timeout 10m && systemctl stop app

  # Wait until somebody leads.
  asynclock wait scheduler --held`,
		Args:              oneKey,
		ValidArgsFunction: a.completeKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.free && o.held {
				return &exitError{code: exitUsage, err: errors.New("--free and --held exclude each other")}
			}
			return a.wait(cmd.Context(), o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.free, "free", false, "until nobody has the key or a part of it; the default")
	flags.BoolVar(&o.held, "held", false, "until somebody has the key or a part of it")
	flags.Var(&o.timeout, "timeout", "how long to wait, in seconds without a unit; 0: look once")
	return cmd
}

// wait waits until the key is as the options say.
func (a *app) wait(ctx context.Context, o waitOptions, key string) error {
	signals, stop := handleSignals()
	defer stop()
	_, err := interruptible(ctx, signals, key, func(ctx context.Context) (none struct{}, err error) {
		locks, err := a.connect(ctx)
		if err != nil {
			return none, err
		}
		defer locks.close()
		w := keyWait{key: key, held: o.held, inspect: locks.Inspect, outage: outage{say: a.complain}, told: make(chan struct{}, 1)}
		end, err := w.observe(locks)
		if err != nil {
			return none, err
		}
		defer end()
		return none, w.run(ctx, o.timeout)
	}, func(struct{}) {})
	return err
}

// A keyWait waits until somebody has a key, or nobody, by looking.
type keyWait struct {
	key     string
	held    bool // what is waited for
	inspect func(context.Context, string) (asynclock.Info, error)
	outage  outage
	told    chan struct{} // has an element if the key may have changed

	info   asynclock.Info // as the last look has found it
	looked time.Time      // when that look began
	again  time.Duration  // how long until the next look
	soon   bool           // an end was announced, of which the store may hear a moment later
}

// The pace of looks.
const (
	soonestLook = 100 * time.Millisecond
	heldLook    = 250 * time.Millisecond // for a holder, who says nothing before
	latestLook  = time.Second
)

// observe has holders that announce their beginning and end wake the wait, in a store that can do so.
func (w *keyWait) observe(locks *connection) (end func(), err error) {
	tell := func() {
		select {
		case w.told <- struct{}{}:
		default:
		}
	}
	end, err = locks.Observe(w.key, asynclock.Observer{
		Announced: func(asynclock.Announcement) { tell() },
		Look:      func(bool) { tell() },
	})
	if errors.Is(err, asynclock.ErrUnsupported) {
		return func() {}, nil
	}
	return end, err
}

// run looks until the key is as it should be. The first look may take longer than the limit.
func (w *keyWait) run(ctx context.Context, limit waitLimit) error {
	waiting, cancel := limit.context(ctx)
	defer cancel()
	done, err := w.look(ctx)
	for !done {
		if err == nil {
			w.pause(waiting)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting.Err() != nil && w.outage.reached:
			return &exitError{code: exitTimedOut, err: fmt.Errorf("%s, after %v", w.describe(), time.Duration(limit))}
		case err != nil:
			return err
		}
		done, err = w.look(waiting)
	}
	return nil
}

// look looks once, and reports whether the wait is over.
func (w *keyWait) look(waiting context.Context) (done bool, err error) {
	ctx, cancel := context.WithTimeout(waiting, lookPatience)
	defer cancel()
	w.looked, w.again = time.Now(), latestLook
	info, err := w.inspect(ctx, w.key)
	if err != nil && waiting.Err() != nil {
		return false, nil // the wait has ended, which says nothing of the server
	}
	answered, err := w.outage.survive(err)
	if !answered {
		return false, err
	}
	w.info = info
	switch {
	case w.held && info.Held, !w.held && !info.Held && info.Waiters == 0:
		return true, nil
	case w.soon:
		w.again, w.soon = soonestLook, false
	case w.held:
		w.again = heldLook
	case info.Held && info.Remaining >= 0:
		w.again = min(max(info.Remaining, soonestLook), latestLook)
	}
	return false, nil
}

// pause waits for the next look. An announcement brings it forward, within bounds, because others may announce much.
func (w *keyWait) pause(ctx context.Context) {
	timer := time.NewTimer(w.again)
	defer timer.Stop()
	for {
		select {
		case <-w.told:
			timer.Reset(time.Until(w.looked.Add(soonestLook)))
			w.soon = true
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		return
	}
}

// describe says how the last look has found the key.
func (w *keyWait) describe() string {
	if !w.info.Held && w.info.Waiters > 0 {
		return fmt.Sprintf("nobody holds %q, but %d wait for it", w.key, w.info.Waiters)
	}
	if !w.info.Held {
		return fmt.Sprintf("nobody holds %q", w.key)
	}
	return describeHeld(heldBy(&w.info))
}
