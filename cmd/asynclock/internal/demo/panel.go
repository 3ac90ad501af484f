// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// title begins an act. The panel counts updates from here.
func (d *show) title(format string, args ...any) {
	d.before = d.crew.updates()
	d.screen.say("")
	d.screen.say("%s", d.screen.paint(bold, fmt.Sprintf(format, args...)))
	d.draw()
}

// say prints a line of the act.
func (d *show) say(format string, args ...any) {
	d.screen.say("   "+format, args...)
	d.draw()
}

// verdict describes the outcome of updates under the lock.
func (d *show) verdict(o outcome) string {
	if o.lost() == 0 {
		return d.screen.paint(green, "none was lost")
	}
	return d.screen.paint(red, strconv.FormatInt(o.lost(), 10)+" were lost")
}

// draw shows the present state.
func (d *show) draw() {
	d.crew.mu.Lock()
	d.rate.note(time.Now(), d.crew.handoffs)
	rows := make([]row, 0, len(d.crew.members))
	for i, m := range d.crew.members {
		rows = append(rows, row{m.name, m.process.Process.Pid, m.updates - d.before[i], m.state})
	}
	d.crew.mu.Unlock()
	d.screen.show(d.panel(rows))
}

// A row is a process in the panel.
type row struct {
	name    string
	pid     int
	updates int64 // in this act
	state
}

// panel returns the lines of the panel.
func (d *show) panel(rows []row) []string {
	lines := []string{
		"",
		d.screen.paint(dim, fmt.Sprintf("   %-8s %8s  %-8s %-17s %8s", "process", "pid", "does", "token", "updates")),
	}
	var most int64 = 1
	for _, r := range rows {
		most = max(most, r.updates)
	}
	for _, r := range rows {
		token := ""
		if r.token != 0 {
			token = strconv.FormatInt(r.token, 10)
		}
		line := fmt.Sprintf("   %-8s %8d  %-8s %-17s %8d  %s", r.name, r.pid, r.doing, token,
			r.updates, strings.Repeat("=", int(20*r.updates/most)))
		lines = append(lines, d.screen.paint(colorOf(r.state), line))
	}
	return append(lines, fmt.Sprintf("   %d handoffs/s", d.rate.perSecond()))
}

func colorOf(s state) string {
	switch s.doing {
	case doingHold:
		return green
	case doingPaused, doingGone, doingStale, doingLost:
		return red
	case doingNothing:
		return dim
	default:
		return plain
	}
}

// A rate is the speed at which a count rises, over about the last second.
type rate struct {
	samples []sample // a second's worth
}

type sample struct {
	at    time.Time
	count int
}

// note adds a reading of the count.
func (r *rate) note(at time.Time, count int) {
	r.samples = append(r.samples, sample{at, count})
	for len(r.samples) > 2 && at.Sub(r.samples[1].at) >= time.Second {
		r.samples = r.samples[1:]
	}
}

// perSecond returns the rise per second, and 0 while there is only one reading.
func (r *rate) perSecond() int {
	if len(r.samples) < 2 {
		return 0
	}
	first, last := r.samples[0], r.samples[len(r.samples)-1]
	elapsed := last.at.Sub(first.at)
	if elapsed <= 0 {
		return 0
	}
	return int(float64(last.count-first.count) / elapsed.Seconds())
}
