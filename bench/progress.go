// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"
)

// progress reports on stderr what is being measured: on one line if stderr is a terminal, and
// otherwise on a line for each workload.
type progress struct {
	start    time.Time
	terminal bool
	last     string
}

func newProgress() *progress {
	info, err := os.Stderr.Stat()
	return &progress{start: time.Now(), terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

func (p *progress) now(workload, peer, doing string, n, of int) {
	elapsed := time.Since(p.start).Round(time.Second)
	switch {
	case p.terminal:
		const clearLine = "\r\x1b[K"
		fmt.Fprintf(os.Stderr, clearLine+"%v  %s  %s %d/%d  %s", elapsed, workload, doing, n, of, peer)
	case p.last != workload:
		fmt.Fprintf(os.Stderr, "%v  %s\n", elapsed, workload)
	}
	p.last = workload
}

func (p *progress) done() {
	if p.terminal {
		fmt.Fprintln(os.Stderr)
	}
}
