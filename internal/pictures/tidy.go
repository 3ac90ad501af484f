// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	grid = 200 * time.Millisecond // between two events: a picture for each
	idle = 2 * time.Second        // the longest time without an event
	last = 6 * time.Second        // for which the end is shown
)

// tidy returns a recording as it is kept: in whole lines, at most one event for each step of the
// grid, without long gaps, without what differs from machine to machine. Its end stays for a while.
func tidy(events []event) []event {
	var kept []event
	for _, e := range inLines(events) {
		e.at = e.at.Truncate(grid)
		e.text = anonymous(e.text)
		if n := len(kept); n > 0 && kept[n-1].at == e.at {
			kept[n-1].text += e.text
			continue
		}
		kept = append(kept, e)
	}
	kept = withoutGaps(kept)
	if n := len(kept); n > 0 {
		kept = append(kept, event{kept[n-1].at + last, reset})
	}
	return kept
}

// reset switches colors off. A terminal shows nothing of it.
const reset = "\x1b[0m"

// inLines moves the rest of an event after its last newline to the next one. A read from a terminal
// may end anywhere, even within a number.
func inLines(events []event) []event {
	var whole []event
	rest := ""
	for _, e := range events {
		rest += e.text
		if end := strings.LastIndexByte(rest, '\n') + 1; end > 0 {
			whole = append(whole, event{e.at, rest[:end]})
			rest = rest[end:]
		}
	}
	if rest != "" {
		whole = append(whole, event{events[len(events)-1].at, rest})
	}
	return whole
}

// withoutGaps lets the first event be at 0, and each other one at most idle after the one before.
func withoutGaps(events []event) []event {
	var before, cut time.Duration
	if len(events) > 0 {
		before, cut = events[0].at, events[0].at
	}
	for i := range events {
		at := events[i].at
		cut += max(0, at-before-idle)
		before = at
		events[i].at = at - cut
	}
	return events
}

var (
	anyPort = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	anyPID  = regexp.MustCompile(`(   ([A-Z]) {8})[ \d]{7}\d(  )`) // in the demo's panel
)

const (
	onePort  = "127.0.0.1:6379"
	firstPID = 4001 // of process A
)

// anonymous replaces ports and process ids.
func anonymous(text string) string {
	text = anyPort.ReplaceAllString(text, onePort)
	return anyPID.ReplaceAllStringFunc(text, func(row string) string {
		part := anyPID.FindStringSubmatch(row)
		return fmt.Sprintf("%s%8d%s", part[1], firstPID+int(part[2][0]-'A'), part[3])
	})
}
