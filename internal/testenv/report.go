// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
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
// line of each package, the output of tests that fail, why tests were left
// out, and at the end once more what the tests said that failed.
type report struct {
	out     io.Writer
	verbose bool

	passed, failed int
	failures       []string
	skipped        map[omission][]string // the tests
	missing        bool                  // one of them, for want of a server

	pending map[testName]*strings.Builder // output of tests under way
}

type testName struct{ pkg, test string }

// repeated is how much of the output of a test that failed is shown a second time, in
// bytes.
const repeated = 4096

// An omission is why tests of a package were skipped.
type omission struct{ pkg, reason string }

// skipPlace is what t.Skip puts in front of a reason.
var skipPlace = regexp.MustCompile(`^\w+\.go:\d+: `)

func newReport(out io.Writer, verbose bool) *report {
	return &report{
		out:     out,
		verbose: verbose,
		skipped: make(map[omission][]string),
		pending: make(map[testName]*strings.Builder),
	}
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
		if strings.HasPrefix(e.Output, "=== ") { // run, paused, goes on
			return
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
	case e.Output == "PASS\n", strings.HasPrefix(e.Output, "-test.shuffle "): // known
	default:
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
	text := r.pop(name)
	if !r.verbose {
		fmt.Fprint(r.out, text)
	}
	var said strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--- ") && said.Len() < repeated {
			said.WriteString(line[:min(len(line), repeated)])
		}
	}
	if said.Len() > 0 { // not only that parts of it failed
		r.failures = append(r.failures, fmt.Sprintf("failed: %s %s\n%s", name.pkg, name.test, said.String()))
	}
}

func (r *report) skip(name testName) {
	var said []string
	for line := range strings.Lines(r.pop(name)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	reason := skipPlace.ReplaceAllString(strings.Join(said, " "), "")
	why := omission{name.pkg, reason}
	r.skipped[why] = append(r.skipped[why], name.test)
	// Such a reason names the variable that it misses.
	r.missing = r.missing || strings.Contains(reason, "ASYNCLOCK_")
}

// close prints the sums, and says whether all is well.
func (r *report) close() bool {
	var lines []string
	skipped := 0
	for why, tests := range r.skipped {
		skipped += len(tests)
		line := fmt.Sprintf("skipped: %s %s", why.pkg, tests[0])
		if more := len(tests) - 1; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, line+": "+why.reason)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(r.out, line)
	}
	for _, failure := range r.failures {
		fmt.Fprintln(r.out, strings.TrimSuffix(failure, "\n"))
	}
	if r.missing {
		fmt.Fprintln(r.out, "FAIL: tests were skipped although their servers are here")
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, skipped)
	return r.failed == 0 && !r.missing
}
