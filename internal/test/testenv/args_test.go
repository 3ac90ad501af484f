// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		job  job
		rest string
		bad  bool
	}{
		{line: "", job: jobTest},
		{line: "-run Unlock -count=3 ./store/...", job: jobTest, rest: "-run Unlock -count=3 ./store/..."},
		{line: "-- ls -serve", job: jobCommand, rest: "ls -serve"},
		{line: "-serve", job: jobServe},
		{line: "--help", job: jobHelp},
		{line: "--", bad: true},
		{line: "-serve ./...", bad: true},
	} {
		got, rest, err := parse(strings.Fields(c.line))
		if (err != nil) != c.bad {
			t.Errorf("parse(%q) gave error %v, want one: %v", c.line, err, c.bad)
		}
		if !c.bad && (got != c.job || !slices.Equal(rest, strings.Fields(c.rest))) {
			t.Errorf("parse(%q) = %v %q, want %v %q", c.line, got, rest, c.job, c.rest)
		}
	}
}

func TestUsageErrorStartsNothing(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--"}, &stdout, &stderr); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if !strings.Contains(stderr.String(), "usage:") {
		t.Errorf("got %q, want the usage", stderr.String())
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	flags, packages := split([]string{"-run", "Unlock", "./store/...", "-v", "."})
	if !slices.Equal(flags, []string{"-run", "Unlock", "-v"}) || !slices.Equal(packages, []string{"./store/...", "."}) {
		t.Errorf("got %q and %q, want the flags and the two packages", flags, packages)
	}
}

func TestWhoNeedsAZooKeeper(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		job  job
		args string
		want bool
	}{
		{jobTest, "", true},
		{jobTest, "-run Unlock", true},
		{jobTest, "./...", true},
		{jobTest, ".", false},
		{jobTest, "./store/...", true},
		{jobTest, "-v ./store/zkstore", true},
		{jobTest, "./internal/test/interop/zookeeper", true},
		{jobTest, "./asynclock ./internal/test/servers", true},
		{jobTest, "./asynclock", false},
		{jobTest, "./store/redisstore ./pubsub", false},
		{jobServe, "", true},
		{jobCommand, "./asynclock", true},
	} {
		if got := playsZooKeeper(c.job, strings.Fields(c.args)); got != c.want {
			t.Errorf("playsZooKeeper(%v, %q) = %v, want %v", c.job, c.args, got, c.want)
		}
	}
}
