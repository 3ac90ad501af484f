// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/watchdog"
)

// blip is how long requests may fail before the log says so. Those who try again at once often succeed.
const blip = time.Second

// lull is how far apart failures may be that are of one outage. After a longer silence nobody knows what was
// between them.
const lull = 10 * time.Second

// outages knows the lanes in which nothing but failures has come lately. An outage begins with the first lane
// and ends with the last. It is logged twice: when it has lasted for longer than a blip, and when the store
// answers again.
type outages struct {
	failing atomic.Int32 // how many lanes; mostly 0, and then an answer costs no mutex

	mu       sync.Mutex
	of       map[int]*outage  // by the store's lane
	reported bool             // the log says that there is one
	since    watchdog.Instant // when the one began that the log tells of
}

// An outage is the failures of a lane since its last answer.
type outage struct {
	since   watchdog.Instant // when the first failure came
	last    watchdog.Instant // when the latest one came
	lasting bool             // longer than a blip
}

// heard notes what a request for the key has come to.
func (c *Client) heard(key string, err error) {
	switch {
	case c.background.Err() != nil, errors.Is(err, ErrClosed): // Close has ended it
	case !failure.Transient(err), errors.Is(err, ErrGrace): // the store has answered, whatever it says
		if c.outages.failing.Load() > 0 {
			c.outageEnds(key)
		}
	case errors.Is(err, ErrUnreachable), errors.Is(err, ErrOutcomeUnknown):
		c.outageGoesOn(key, err)
	}
}

// outageGoesOn notes a failure in the key's lane.
func (c *Client) outageGoesOn(key string, err error) {
	lane, now, o := c.session.Lane(key), watchdog.Now(), &c.outages
	o.mu.Lock()
	defer o.mu.Unlock()
	current := o.of[lane]
	if current == nil {
		if o.of == nil {
			o.of = make(map[int]*outage)
		}
		o.of[lane] = &outage{since: now, last: now}
		o.failing.Add(1)
		return
	}
	if !current.lasting && now.Sub(current.last) > lull {
		current.since = now
	}
	current.last = now
	down := now.Sub(current.since)
	if down < blip {
		return
	}
	current.lasting = true
	if o.reported {
		return
	}
	o.reported, o.since = true, current.since
	c.log.Add(slog.LevelWarn, "the store can't be reached, or refuses; leases last until their deadlines, and requests are repeated",
		slog.Time("since", time.Now().Add(-down)), slog.String("key", key), slog.Any("error", err))
}

// outageEnds notes an answer in the key's lane.
func (c *Client) outageEnds(key string) {
	lane, now, o := c.session.Lane(key), watchdog.Now(), &c.outages
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over(lane, now) && o.reported {
		o.reported = false
		c.log.Add(slog.LevelWarn, "the store answers again",
			slog.Duration("after", now.Sub(o.since).Round(time.Millisecond)), slog.String("key", key))
	}
}

// areNow reports whether there are failures of less than a lull ago with no answer since.
func (o *outages) areNow(now watchdog.Instant) bool {
	if o.failing.Load() == 0 {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, outage := range o.of {
		if now.Sub(outage.last) <= lull {
			return true
		}
	}
	return false
}

// over forgets a lane, and all in which nobody has asked for a while. It reports whether no lane is left in which
// an outage lasts.
func (o *outages) over(lane int, now watchdog.Instant) bool {
	ended := true
	for other, outage := range o.of {
		switch {
		case other == lane, now.Sub(outage.last) > lull:
			delete(o.of, other)
			o.failing.Add(-1)
		case outage.lasting:
			ended = false
		}
	}
	return ended
}
