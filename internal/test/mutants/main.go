// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks each rule of the protocol in turn and looks whether the
// test that guards the rule notices.
//
//	go run ./internal/test/mutants                 every mutant
//	go run ./internal/test/mutants -run 'W4|fence' those whose name or file matches
//	go run ./internal/test/mutants -list           what there is
//	go run ./internal/test/mutants -shard 2/8      the second eighth of them
//	go run ./internal/test/mutants -most 24        24 of them, for a quick look
//	go run ./internal/test/mutants -tries 3        those that survive again, twice
//
// The mutants of a package are in its testdata/mutants.txt; CONTRIBUTING.md says how to
// write one. The tree is never edited: the broken file exists only in an overlay of the
// go command.
//
// A mutant is killed if the test that it names fails, and that test only counts:
// a mutant that does not compile, or that only other tests notice, is not
// killed. A mutant whose old text is no longer in the file, or whose test is not
// there, is rotten. The exit code is 1 if one survived or is rotten.
//
// list.go reads the mutants, runner.go tries them, verdict.go judges.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if !ok {
		os.Exit(1)
	}
}

// run does what the arguments say and reports whether all is well.
func run(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	jobs := flags.Int("j", runtime.NumCPU(), "how many to try at once")
	pattern := flags.String("run", "", "only mutants whose name or file matches this regular expression")
	shard := flags.String("shard", "1/1", "K/N: only each N-th of these, beginning with the K-th")
	most := flags.Int("most", 0, "at most so many of these, from all places; 0 for no limit")
	limit := flags.Duration("limit", 30*time.Second, "how long a test may take before it counts as failed")
	tries := flags.Int("tries", 1, "how often to try a mutant that survives: for tests that notice almost certainly")
	list := flags.Bool("list", false, "print the mutants and try none")
	if err := flags.Parse(args); err != nil {
		return err == flag.ErrHelp, nil //nolint:errorlint // flag returns this very value, and has printed others
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return false, err
	}
	if *jobs < 1 || *most < 0 || *tries < 1 || flags.NArg() > 0 {
		return false, fmt.Errorf("-j, -most and -tries take positive numbers, and there are no arguments: %q", args)
	}
	var part, parts int
	if n, err := fmt.Sscanf(*shard+"\n", "%d/%d\n", &part, &parts); n != 2 || err != nil || part < 1 || part > parts {
		return false, fmt.Errorf("-shard takes K/N, with K from 1 to N: %q", *shard)
	}
	root, err := findRoot(ctx)
	if err != nil {
		return false, err
	}
	all, err := parseAll(os.DirFS(root))
	if err != nil {
		return false, err
	}
	chosen := thin(share(choose(all, wanted), part-1, parts), *most)
	if *list {
		for _, m := range chosen {
			fmt.Fprintf(out, "%s\n\t%s %s\n", m.name, m.pkg, m.test)
		}
		return true, nil
	}
	r, err := newRunner(root, *limit, *tries)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(r.scratch)
	return r.tryAll(ctx, chosen, *jobs, out), nil
}

// choose returns the mutants whose name or file is wanted.
func choose(all []mutant, wanted *regexp.Regexp) (chosen []mutant) {
	for _, m := range all {
		wantsFile := func(e edit) bool { return wanted.MatchString(e.file) }
		if wanted.MatchString(m.name) || slices.ContainsFunc(m.edits, wantsFile) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// share returns each n-th of the mutants, beginning with the one at first.
func share(all []mutant, first, n int) (chosen []mutant) {
	for i := first; i < len(all); i += n {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// thin returns at most so many of the mutants, spread over all of them. 0 means all.
func thin(all []mutant, most int) []mutant {
	if most == 0 || len(all) <= most {
		return all
	}
	chosen := make([]mutant, most)
	for i := range chosen {
		chosen[i] = all[i*len(all)/most]
	}
	return chosen
}
