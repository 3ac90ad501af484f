// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A verdict is what became of a mutant.
type verdict int

const (
	killed   verdict = iota
	survived         // its test passes
	rotten           // it can't be tried, or shows nothing
	skipped          // what its test needs is not there
)

func (v verdict) String() string {
	return [...]string{"killed", "SURVIVED", "ROTTEN", "skipped"}[v]
}

// A result is a verdict and what is to be said about it.
type result struct {
	verdict verdict
	remark  string // why; how, if killed otherwise than by a failed assertion
}

// afterTries adds how many it took, if one did not do.
func (res result) afterTries(n int) result {
	if n > 1 {
		res.remark = strings.TrimPrefix(fmt.Sprintf("%s, %d tries", res.remark, n), ", ")
	}
	return res
}

// judge says what the output of a mutant's test means. With no test named, it
// was that of all tests of the package.
func judge(m mutant, output string, passed bool) result {
	failed := failures(output)
	switch {
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		return result{rotten, "it does not compile: " + excerpt(output)}
	case m.test == "" && len(failed) == 0:
		return result{rotten, "it names no test, and no test of " + m.pkg + " fails"}
	case m.test == "":
		return result{rotten, "it names no test; there fail " + strings.Join(failed, " ")}
	case passed:
		return result{survived, ""}
	case strings.Contains(output, "panic: test timed out"):
		return result{killed, "its time ran out"}
	case slices.Contains(failed, m.test):
		return result{killed, ""}
	case strings.Contains(output, "panic: ") || strings.Contains(output, "fatal error: "):
		return result{killed, "panic"} // on a goroutine that is not the test's
	default:
		return result{survived, m.test + " passes, and something else failed: " + excerpt(output)}
	}
}

var outcome = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) `)

// failures lists the tests that the output of go test calls failed.
func failures(output string) (names []string) {
	for _, found := range outcome.FindAllStringSubmatch(output, -1) {
		if found[1] == "FAIL" {
			names = append(names, found[2])
		}
	}
	return names
}

// outcomes returns what the output of go test -v says of each test.
func outcomes(output string) map[string]string {
	of := make(map[string]string)
	for _, found := range outcome.FindAllStringSubmatch(output, -1) {
		of[found[2]] = found[1]
	}
	return of
}

// excuse is the verdict on a mutant whose test can't show anything, given what
// became of the tests of its package in the tree as it is.
func (m mutant) excuse(of map[string]string) (excuse result, has bool) {
	switch of[m.test] {
	case "PASS":
		if leftOut(of, m.test) {
			return result{skipped, "every part of " + m.test + " is"}, true
		}
		return result{}, false
	case "SKIP":
		return result{skipped, m.test + " is"}, true
	case "FAIL":
		return result{rotten, m.test + " fails without it, too"}, true
	}
	for i, c := range m.test {
		if c == '/' && of[m.test[:i]] == "SKIP" { // and with it all that it would have begun
			return result{skipped, m.test[:i] + " is"}, true
		}
	}
	return result{rotten, m.test + " is not in " + m.pkg + ", or did not finish"}, true
}

// leftOut reports whether a test has parts and all of them were skipped, by which it passes.
func leftOut(of map[string]string, test string) bool {
	parts := 0
	for name, how := range of {
		if strings.HasPrefix(name, test+"/") {
			parts++
			if how != "SKIP" && !leftOut(of, name) {
				return false
			}
		}
	}
	return parts > 0
}

// excerpt is the end of an output, short enough for a line.
func excerpt(output string) string {
	const longest = 400
	text := strings.Join(strings.Fields(output), " ")
	if len(text) > longest {
		text = "… " + text[len(text)-longest:]
	}
	return strings.ToValidUTF8(text, "")
}
