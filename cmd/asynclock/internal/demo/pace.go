// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"
)

// frame is how often the panel is drawn.
const frame = 100 * time.Millisecond

// watch lets the processes continue for a while.
func (d *show) watch(ctx context.Context, long time.Duration) error {
	over := time.After(long)
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(frame):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		d.draw()
	}
	d.crew.mu.Lock()
	defer d.crew.mu.Unlock()
	return d.crew.checkLocked()
}

// until lets the processes continue until condition holds. It calls condition under the crew's
// mutex. The text in what names the condition.
func (d *show) until(ctx context.Context, what string, condition func() bool) error {
	met := func() (bool, error) {
		d.crew.mu.Lock()
		defer d.crew.mu.Unlock()
		return condition(), d.crew.checkLocked()
	}
	tooLong := time.After(d.TTL + patience)
	redraw := time.NewTicker(frame)
	defer redraw.Stop()
	for {
		if ok, err := met(); ok || err != nil {
			return err
		}
		select {
		case <-d.crew.heard:
		case <-redraw.C:
			d.draw()
		case <-tooLong:
			return fmt.Errorf("gave up: nobody came to %s", what)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// allRest stops every living process, and waits until it has stopped.
func (d *show) allRest(ctx context.Context) error {
	if err := d.crew.tell(doRest, d.crew.living()...); err != nil {
		return err
	}
	return d.untilRest(ctx)
}

// untilRest waits until every living process is idle.
func (d *show) untilRest(ctx context.Context) error {
	return d.until(ctx, "rest", func() bool {
		for _, m := range d.crew.living() {
			if !m.rests {
				return false
			}
		}
		return true
	})
}
