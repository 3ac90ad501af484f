// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"
)

// A job is what the program was asked to do.
type job int

const (
	jobTest job = iota
	jobCommand
	jobServe
	jobHelp
)

// parse splits the command line into a job and its own arguments. Flags that
// are not ours belong to go test.
func parse(args []string) (job, []string, error) {
	if len(args) == 0 {
		return jobTest, nil, nil
	}
	switch rest := args[1:]; args[0] {
	case "-h", "-help", "--help":
		return jobHelp, nil, nil
	case "-serve", "--serve":
		if len(rest) > 0 {
			return 0, nil, errors.New("-serve takes no arguments")
		}
		return jobServe, nil, nil
	case "--":
		if len(rest) == 0 {
			return 0, nil, errors.New("no command after --")
		}
		return jobCommand, rest, nil
	}
	return jobTest, args, nil
}

// split tells the packages among the arguments of go test, which begin with a dot, from
// its flags.
func split(args []string) (flags, packages []string) {
	for _, a := range args {
		if strings.HasPrefix(a, ".") {
			packages = append(packages, a)
		} else {
			flags = append(flags, a)
		}
	}
	return flags, packages
}

// checksAlerts reports whether the packages to be tested have the alerts checked.
func checksAlerts(args []string) bool {
	_, packages := split(args)
	return len(packages) == 0 || slices.ContainsFunc(packages, func(p string) bool { return strings.HasPrefix(p, "./examples") })
}

// playsZooKeeper reports whether the tests that are chosen by these arguments of go
// test may need a ZooKeeper. Without packages they are all.
func playsZooKeeper(job job, args []string) bool {
	_, packages := split(args)
	needs := func(a string) bool {
		return a == "./..." || strings.HasPrefix(a, "./store/...") || strings.HasPrefix(a, "./store/zk") || strings.HasPrefix(a, "./store/any") || strings.HasPrefix(a, "./cmd/") ||
			strings.HasPrefix(a, "./internal/test/interop") || strings.HasPrefix(a, "./internal/test/servers")
	}
	return job != jobTest || len(packages) == 0 || slices.ContainsFunc(packages, needs)
}
