// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// A setting is everything that tests need beside themselves.
type setting struct {
	dir     string   // for what is of no use afterwards
	modules []string // their directories, that of the root first
	targets []*target
	exports []string // where the tests find it all, as variables of the environment
}

// planFor says what the job needs.
func planFor(job job, args []string) plan {
	return plan{
		compiles: job == jobTest, java: job == jobTest && playsJava(args), zooKeeper: playsZooKeeper(job, args),
		promtool: job == jobTest && checksAlerts(args),
	}
}

// setUp installs what is missing and starts what the job needs. If any of that fails,
// nothing is left.
func setUp(ctx context.Context, job job, args []string, log io.Writer) (*setting, error) {
	plan := planFor(job, args)
	if err := prepare(ctx, plan, log); err != nil {
		return nil, err
	}
	s := new(setting)
	err := s.build(ctx, plan, args, log)
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// build starts the servers. While they start and grow old enough, it builds what the
// tests need.
func (s *setting) build(ctx context.Context, plan plan, args []string, log io.Writer) (err error) {
	if s.modules, err = modules(ctx); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "asynclock-testenv-"); err != nil {
		return err
	}
	var building sync.WaitGroup
	var peers []string
	var errPeers, errCompile error
	if plan.java {
		building.Go(func() { peers, errPeers = buildPeers(ctx, s.modules[0], log) })
	}
	if plan.compiles {
		building.Go(func() { errCompile = s.compile(ctx, args, log) })
	}
	err = s.start(ctx, plan)
	building.Wait()
	s.exports = append(s.exports, peers...)
	return errors.Join(err, errPeers, errCompile)
}

// start starts the servers, and waits until they grant locks.
func (s *setting) start(ctx context.Context, plan plan) (err error) {
	if s.targets, err = start(ctx, starters(plan), s.dir); err != nil {
		return err
	}
	s.exports = env(s.targets)
	return awaitAge(ctx, s.targets)
}

// close stops what runs and removes what it wrote.
func (s *setting) close() {
	stop(s.targets)
	os.RemoveAll(s.dir)
}

// split tells the packages among the arguments of go test from its flags. Without any,
// they are all of every module.
func (s *setting) split(args []string) (flags, packages []string) {
	flags, packages = split(args)
	if len(packages) > 0 {
		return flags, packages
	}
	for _, dir := range s.modules {
		rel, err := filepath.Rel(s.modules[0], dir)
		if err != nil {
			panic(err) // both are absolute
		}
		packages = append(packages, "./"+filepath.ToSlash(filepath.Join(rel, "...")))
	}
	return flags, packages
}

// compile compiles the packages to be tested, as go test will need them. It ignores errors,
// because go test will report them.
func (s *setting) compile(ctx context.Context, args []string, log io.Writer) error {
	_, packages := s.split(args)
	fmt.Fprintln(log, "testenv: compiling the tests meanwhile")
	cmd := command{dir: s.modules[0], env: os.Environ(), stdout: io.Discard, stderr: io.Discard, grace: grace}
	_, err := cmd.run(ctx, "go", append([]string{"list", "-e", "-export", "-test", "-race"}, packages...)...)
	return err
}
