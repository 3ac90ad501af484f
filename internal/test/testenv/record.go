// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

type testName struct{ pkg, test string }

func (n testName) String() string { return n.pkg + " " + n.test }

// A record is what became of the tests, and of the repetition of those that failed.
type record struct {
	last   map[testName]string // what became of each in the end: pass, fail or skip
	mended []testName          // failed, and passed when they were repeated
	// broken are packages that failed although none of their tests did: they left goroutines
	// behind, say, or did not compile. A repetition runs none of their tests, and passes.
	broken []string
	said   map[string]string // what broken packages have printed outside of their tests
}

func readRecord(file string) (record, error) {
	f, err := os.Open(file)
	if err != nil {
		return record{}, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return newRecord(f)
}

// newRecord reads events until in ends.
func newRecord(in io.Reader) (r record, err error) {
	r.last, r.said = make(map[testName]string), make(map[string]string)
	failed := make(map[testName]bool) // at least once
	tests := make(map[string]bool)    // packages of which a test has failed since they were started
	said := make(map[string]string)
	lines := bufio.NewReader(in)
	for err == nil {
		var line string
		line, err = lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			continue // what a build prints
		}
		name := testName{e.Package, e.Test}
		switch e.Action {
		case "start":
			delete(tests, e.Package)
			delete(said, e.Package)
		case "output":
			if e.Test == "" {
				said[e.Package] += e.Output
			}
		case "fail":
			switch {
			case e.Test != "":
				failed[name], tests[e.Package], r.last[name] = true, true, e.Action
			case !tests[e.Package]:
				r.broken = append(r.broken, e.Package)
				r.said[e.Package] = said[e.Package]
			}
		case "pass", "skip":
			if e.Test != "" {
				r.last[name] = e.Action
			}
		}
	}
	for name := range failed {
		if r.last[name] != "fail" && !hasPart(failed, name) {
			r.mended = append(r.mended, name)
		}
	}
	slices.SortFunc(r.mended, func(a, b testName) int { return strings.Compare(a.String(), b.String()) })
	if err == io.EOF {
		err = nil
	}
	return r, err
}

// hasPart reports whether a subtest of the test failed, which then speaks for both.
func hasPart(failed map[testName]bool, of testName) bool {
	for name := range failed {
		if name.pkg == of.pkg && strings.HasPrefix(name.test, of.test+"/") {
			return true
		}
	}
	return false
}

// forgive prints what failed and passed when it was repeated, and reports whether all of
// that may be forgiven. In virtual time nothing may: a test that fails there has found an
// order of events that can happen. The module's packages are below root.
func (r record) forgive(out io.Writer, root string) bool {
	forgiven := true
	for _, pkg := range r.broken {
		fmt.Fprintf(out, "%sFAIL: %s failed without a test that did\n", r.said[pkg], pkg)
		forgiven = false
	}
	for _, name := range r.mended {
		if isVirtual(root, name) {
			fmt.Fprintf(out, "FAIL: %v failed, and runs in virtual time: that it passed when repeated excuses nothing\n", name)
			forgiven = false
			continue
		}
		fmt.Fprintf(out, "flaky: %v failed, and passed when it was repeated by itself: find out why\n", name)
	}
	return forgiven
}

// sums says how many tests had which end.
func (r record) sums() string {
	count := make(map[string]int)
	for _, end := range r.last {
		count[end]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped", count["pass"], count["fail"], count["skip"])
}

// inRealTime are the packages, below the module's path, whose tests wait for servers,
// processes and clocks outside their own. All others are repeatable.
var inRealTime = regexp.MustCompile(`^(|asynclockotel|bench|cmd/asynclock/internal/cli|examples|fence/(fencepgx|fenceredis)|store/(anystore|goredisstore|quorumstore|redisstore|springredis|sqlstore(/springsql)?|zkstore)|internal/(proc|redisconn)|internal/test/(acceptance|chaos|fences|interop/.*|kit/redistest|servers|testenv))$`)

const modulePath = "github.com/asynclock/asynclock-go"

// isVirtual reports whether a test runs in virtual time, or needs none: by its package,
// or because the file that declares it makes bubbles.
func isVirtual(root string, name testName) bool {
	pkg := strings.Trim(strings.TrimPrefix(name.pkg, modulePath), "/")
	if !inRealTime.MatchString(pkg) {
		return true
	}
	function, _, _ := strings.Cut(name.test, "/")
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(function) + `\(`)
	files, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go")) // the pattern is well-formed
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && declared.Match(text) {
			return strings.Contains(string(text), `"testing/synctest"`)
		}
	}
	return true // nobody declares it: something is wrong
}
