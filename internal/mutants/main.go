// SPDX-License-Identifier: Apache-2.0

// Command mutants breaks each rule of the protocol in turn and looks whether the
// test that guards the rule notices.
//
//	go run ./internal/mutants                 every mutant
//	go run ./internal/mutants -run 'W4|fence' those whose name or file matches
//	go run ./internal/mutants -list           what there is
//	go run ./internal/mutants -every 4        each fourth, for a quick look
//	go run ./internal/mutants -tries 3        those that survive again, twice
//
// The mutants are in the .txt files beside this one, a file per package;
// docs/mutants.md says how to write one. The tree is never edited: the broken
// file exists only in an overlay of the go command.
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
	every := flags.Int("every", 1, "only each so manieth of these")
	limit := flags.Duration("limit", 30*time.Second, "how long a test may take before it counts as failed")
	tries := flags.Int("tries", 1, "how often to try a mutant that survives: for tests that notice almost certainly")
	list := flags.Bool("list", false, "print the mutants and try none")
	markdown := flags.Bool("markdown", false, "print what docs/mutants.md has to be")
	if err := flags.Parse(args); err != nil {
		return err == flag.ErrHelp, nil //nolint:errorlint // flag returns this very value, and has printed others
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return false, err
	}
	if *jobs < 1 || *every < 1 || *tries < 1 || flags.NArg() > 0 {
		return false, fmt.Errorf("-j, -every and -tries take positive numbers, and there are no arguments: %q", args)
	}
	all, err := parseAll(lists)
	if err != nil {
		return false, err
	}
	if *markdown {
		_, err = io.WriteString(out, page(all))
		return err == nil, err
	}
	chosen := choose(all, wanted, *every)
	if *list {
		for _, m := range chosen {
			fmt.Fprintf(out, "%s\n\t%s: %s\n", m.name, m.pkg, m.test)
		}
		return true, nil
	}
	r, err := newRunner(ctx, *limit, *tries)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(r.scratch)
	return r.tryAll(ctx, chosen, *jobs, out), nil
}

// choose returns each every-th of the mutants that are wanted.
func choose(all []mutant, wanted *regexp.Regexp, every int) (chosen []mutant) {
	matching := 0
	for _, m := range all {
		wantsFile := func(e edit) bool { return wanted.MatchString(e.file) }
		if !wanted.MatchString(m.name) && !slices.ContainsFunc(m.edits, wantsFile) {
			continue
		}
		if matching%every == 0 {
			chosen = append(chosen, m)
		}
		matching++
	}
	return chosen
}
