// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An event is a line of go test -json, which go doc test2json describes.
type event struct {
	Action  string
	Package string
	Test    string // "" in what concerns the whole package
	Output  string
}

// A report turns the events of go test into what a person wants to see: the
// line of each package, the output of tests that fail, and every test that was
// left out, with its reason.
type report struct {
	out     io.Writer
	verbose bool

	passed, failed int
	skipped        []string
	missing        bool // a test was left out for want of a server

	pending map[testName]*strings.Builder // output of tests under way
}

type testName struct{ pkg, test string }

func (n testName) String() string { return n.pkg + " " + n.test }

func newReport(out io.Writer, verbose bool) *report {
	return &report{out: out, verbose: verbose, pending: make(map[testName]*strings.Builder)}
}

// read takes events until in ends. What is no event is shown as it is.
func (r *report) read(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			r.take(e)
		} else {
			fmt.Fprint(r.out, line)
		}
		if err != nil {
			return
		}
	}
}

func (r *report) take(e event) {
	if e.Test == "" {
		r.takePackage(e)
		return
	}
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "output":
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
		if r.pending[name] == nil {
			r.pending[name] = new(strings.Builder)
		}
		r.pending[name].WriteString(e.Output)
	case "pass":
		r.passed++
		r.pop(name)
	case "fail":
		r.failed++
		r.show(name)
	case "skip":
		r.skip(name)
	}
}

func (r *report) takePackage(e event) {
	switch {
	case e.Action == "fail": // whatever has not ended by now never did
		for name := range r.pending {
			if name.pkg == e.Package {
				r.show(name)
			}
		}
	case e.Output != "" && e.Output != "PASS\n":
		fmt.Fprint(r.out, e.Output)
	}
}

// pop returns what a test has printed, and forgets it.
func (r *report) pop(name testName) string {
	text := r.pending[name]
	delete(r.pending, name)
	if text == nil {
		return ""
	}
	return text.String()
}

// show prints the output of a test, unless that has been done.
func (r *report) show(name testName) {
	if text := r.pop(name); !r.verbose {
		fmt.Fprint(r.out, text)
	}
}

func (r *report) skip(name testName) {
	var reason []string
	for line := range strings.Lines(r.pop(name)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			reason = append(reason, line)
		}
	}
	text := strings.Join(reason, " ")
	r.skipped = append(r.skipped, fmt.Sprintf("%v: %s", name, text))
	// Such a reason names the variable that it misses.
	r.missing = r.missing || strings.Contains(text, "ASYNCLOCK_")
}

// close prints the sums, and says whether all is well.
func (r *report) close() bool {
	slices.Sort(r.skipped)
	for _, s := range r.skipped {
		fmt.Fprintln(r.out, "skipped:", s)
	}
	if r.missing {
		fmt.Fprintln(r.out, "FAIL: tests were skipped although their servers are here")
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skipped))
	return r.failed == 0 && !r.missing
}
