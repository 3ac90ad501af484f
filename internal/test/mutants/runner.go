// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const modulePath = "github.com/asynclock/asynclock-go"

// A runner tries mutants of the repository at root.
type runner struct {
	root    string
	scratch string
	limit   time.Duration
	tries   int // of a mutant, as long as it survives
}

// findRoot returns the folder of the main module, which holds the nested ones.
func findRoot(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", modulePath, err)
	}
	return strings.TrimSpace(string(mod)), nil
}

// newRunner makes a runner. The caller removes its scratch directory.
func newRunner(root string, limit time.Duration, tries int) (*runner, error) {
	scratch, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	return &runner{root: root, scratch: scratch, limit: limit, tries: tries}, nil
}

// tryAll tries the mutants, prints a line for each, and reports whether all
// that could be tried were killed.
func (r *runner) tryAll(ctx context.Context, all []mutant, jobs int, out io.Writer) bool {
	began := time.Now()
	var mu sync.Mutex // of out and count
	count := make(map[verdict]int)
	tell := func(m mutant, res result) {
		mu.Lock()
		defer mu.Unlock()
		count[res.verdict]++
		line := fmt.Sprintf("%-8s  %s: %s", res.verdict, m.pkg, m.name)
		if res.remark != "" {
			line += " (" + res.remark + ")"
		}
		fmt.Fprintln(out, line)
	}

	excuses := r.excuses(ctx, all, jobs)
	each(all, jobs, func(m mutant) {
		res, known := excuses[m.name]
		if !known {
			res = r.try(ctx, m)
		}
		tell(m, res)
	})

	fmt.Fprintf(out, "%d killed, %d survived, %d rotten, %d skipped in %v\n",
		count[killed], count[survived], count[rotten], count[skipped], time.Since(began).Round(time.Second))
	return ctx.Err() == nil && count[survived] == 0 && count[rotten] == 0
}

// each calls f for every mutant, jobs of them at once.
func each(all []mutant, jobs int, f func(mutant)) {
	next := make(chan mutant)
	var working sync.WaitGroup
	for range jobs {
		working.Go(func() { // ends when there are no more
			for m := range next {
				f(m)
			}
		})
	}
	for _, m := range all {
		next <- m
	}
	close(next)
	working.Wait()
}

// excuses runs the named tests on the tree as it is, and returns those mutants
// whose test could not show anything.
func (r *runner) excuses(ctx context.Context, all []mutant, jobs int) map[string]result {
	excuses := make(map[string]result)
	guards := make(map[string]mutant) // per package one that stands for all its tests
	for _, m := range all {
		if _, err := m.broken(r.root); err != nil {
			excuses[m.name] = result{rotten, err.Error()}
		}
		if m.test != "" {
			g := guards[m.pkg]
			g.pkg = m.pkg
			if name, _, _ := strings.Cut(m.test, "/"); !slices.Contains(strings.Split(g.test, "|"), name) {
				g.test = strings.TrimPrefix(g.test+"|"+name, "|")
			}
			guards[m.pkg] = g
		}
	}
	var mu sync.Mutex
	of := make(map[string]map[string]string)
	each(slices.Collect(maps.Values(guards)), jobs, func(g mutant) {
		// All of them together, some of which wait for one server: no mutant is tried yet.
		output, _ := r.goTest(ctx, g.pkg, "", "-v", "-run=^("+g.test+")$", "-timeout="+(10*r.limit).String())
		mu.Lock()
		of[g.pkg] = outcomes(output)
		mu.Unlock()
	})
	for _, m := range all {
		if _, known := excuses[m.name]; known || m.test == "" {
			continue
		}
		if excuse, has := m.excuse(of[m.pkg]); has {
			excuses[m.name] = excuse
		}
	}
	return excuses
}

// try runs a mutant's test with the mutant in place.
func (r *runner) try(ctx context.Context, m mutant) result {
	files, err := m.broken(r.root)
	if err != nil {
		return result{rotten, err.Error()}
	}
	dir, err := os.MkdirTemp(r.scratch, "")
	if err != nil {
		return result{rotten, err.Error()}
	}
	defer os.RemoveAll(dir)
	description, err := overlay(dir, r.root, files)
	if err != nil {
		return result{rotten, err.Error()}
	}
	var args []string
	if m.test != "" {
		args = append(args, "-run="+exactly(m.test))
	}
	for n := 1; ; n++ {
		output, passed := r.goTest(ctx, m.pkg, description, args...)
		if ctx.Err() != nil {
			return result{rotten, "interrupted"}
		}
		if res := judge(m, output, passed); res.verdict != survived || n >= r.tries {
			return res.afterTries(n)
		}
	}
}

// exactly is the pattern for one test or subtest.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// goTest runs tests of a package and returns what go test says. The overlay may be empty. Tests that build programs
// find it in the environment.
func (r *runner) goTest(ctx context.Context, pkg, overlay string, args ...string) (output string, passed bool) {
	args = append([]string{"test", "-vet=off", "-count=1", "-timeout=" + r.limit.String(), "-overlay=" + overlay}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Env = append(os.Environ(), "ASYNCLOCK_OVERLAY="+overlay)
	cmd.Dir = r.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the go command then ends what it started
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}
