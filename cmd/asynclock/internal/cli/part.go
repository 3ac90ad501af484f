// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A part is how much of its key is taken: all of it by default.
type part struct {
	shared  bool
	permits int // 0: none
	of      int
}

func (p *part) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&p.shared, "shared", false, "take the key together with others that use --shared, as a reader")
	flags.IntVar(&p.permits, "permits", 0, "take `N` of the permits that --of counts")
	flags.IntVar(&p.of, "of", 0, "how many permits the key has; all that use the key should say the same `M`")
}

// check returns an error for flags that contradict each other.
func (p part) check(o *holdOptions) error {
	switch {
	case p.shared && (p.permits != 0 || p.of != 0):
		return errors.New("--shared and --permits exclude each other")
	case p.shared && o.minHold != 0:
		return errors.New("--shared and --min-hold exclude each other")
	case (p.permits == 0) != (p.of == 0):
		return errors.New("give both --permits N and --of M")
	case p.permits < 0 || p.of < p.permits || p.of > asynclock.MaxPermits:
		return errors.New("--permits is at least 1, and --of at least that")
	}
	return nil
}

// A taking takes a key in one of the ways of the library.
type taking func(ctx context.Context, key string, options ...asynclock.LockOption) (*asynclock.Lease, error)

// calls returns the calls that wait for the part, and that don't.
func (p part) calls(locks *connection, key string) (wait, try taking, err error) {
	switch {
	case p.shared:
		return locks.RLock, locks.TryRLock, nil
	case p.permits == 0:
		return locks.Lock, locks.TryLock, nil
	}
	s, err := locks.Semaphore(key, p.of)
	if err != nil {
		return nil, nil, err
	}
	of := func(call func(context.Context, int, ...asynclock.LockOption) (*asynclock.Lease, error)) taking {
		return func(ctx context.Context, _ string, options ...asynclock.LockOption) (*asynclock.Lease, error) {
			return call(ctx, p.permits, options...)
		}
	}
	return of(s.Acquire), of(s.TryAcquire), nil
}
