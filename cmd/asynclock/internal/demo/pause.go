// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// pauseHolder stops a holder for longer than its TTL. A lock alone can't prevent its next write
// after the pause; the token can.
func (d *show) pauseHolder(ctx context.Context) error {
	d.title("4. A holder is paused past its TTL (SIGSTOP), as by a long garbage collection.")
	if !proc.CanPause {
		d.say("Left out: this system can't pause a process.")
		return nil
	}
	sleeper, heir := d.crew.members[1], d.crew.members[2]
	if err := d.take(ctx, sleeper); err != nil {
		return err
	}
	if err := d.write(ctx, sleeper); err != nil {
		return err
	}
	stale := d.crew.state(sleeper).token
	d.say("Process %s holds the lock with token %d; it writes to a ledger that", sleeper.name, stale)
	d.say("checks tokens, and is paused before it writes again.")
	if err := d.crew.tell(doHold, heir); err != nil {
		return err
	}
	if err := d.watch(ctx, d.Pause); err != nil {
		return err
	}
	paused := time.Now()
	if err := d.crew.pause(sleeper); err != nil {
		return err
	}
	if err := d.until(ctx, "take over", func() bool { return heir.holds }); err != nil {
		return err
	}
	_, at := d.crew.lastTake()
	if err := d.write(ctx, heir); err != nil {
		return err
	}
	d.say("Process %s has the lock after %v with the larger token %d; its write is taken.",
		heir.name, at.Sub(paused).Round(10*time.Millisecond), d.crew.state(heir).token)

	// The order waits in the sleeper's stdin, so that the sleeper writes first after the pause.
	if err := d.crew.tell(doWrite, sleeper); err != nil {
		return err
	}
	if err := d.watch(ctx, d.Pause); err != nil {
		return err
	}
	wrote := d.crew.state(sleeper).wrote
	if err := d.crew.resume(sleeper); err != nil {
		return err
	}
	err := d.until(ctx, "learn of its loss", func() bool {
		return sleeper.lost != "" && (sleeper.refused != "" || sleeper.wrote > wrote)
	})
	if err != nil {
		return err
	}
	woken := d.crew.state(sleeper)
	if woken.refused == "" {
		return fmt.Errorf("%w: the ledger took a stale token", ErrUnsafe)
	}
	d.say("Process %s runs on, learns %q", sleeper.name, woken.lost)
	d.say("and tries to write: %s, %s.", d.screen.paint(green, "refused"), woken.refused)
	return nil
}

// take makes m alone take the lock and keep it.
func (d *show) take(ctx context.Context, m *member) error {
	if err := d.crew.tell(doHold, m); err != nil {
		return err
	}
	return d.until(ctx, "take the lock", func() bool { return m.holds })
}

// write makes m, which holds the lock, write to the ledger.
func (d *show) write(ctx context.Context, m *member) error {
	wrote := d.crew.state(m).wrote
	if err := d.crew.tell(doWrite, m); err != nil {
		return err
	}
	return d.until(ctx, "write to the ledger", func() bool { return m.wrote > wrote })
}
