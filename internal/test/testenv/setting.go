// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// A setting is everything that tests need beside themselves.
type setting struct {
	dir     string   // for what is of no use afterwards
	modules []string // the directories of this one and of those below it
	targets []*target
	exports []string // where the tests find it all, as variables of the environment
}

// planFor says what the job needs.
func planFor(job job, args []string) plan {
	return plan{compiles: job == jobTest, java: job == jobTest && playsJava(args), zooKeeper: playsZooKeeper(job, args)}
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
		building.Go(func() { errCompile = compile(ctx, s.modules, args, log) })
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

// compile compiles what is to be tested, as go test will want it. What is wrong there, go
// test will say.
func compile(ctx context.Context, modules, args []string, log io.Writer) error {
	_, packages := split(args)
	if len(packages) > 0 {
		modules = modules[:1]
	} else {
		packages = everything
	}
	fmt.Fprintln(log, "testenv: compiling the tests meanwhile")
	for _, dir := range modules {
		cmd := command{dir: dir, env: os.Environ(), stdout: io.Discard, stderr: io.Discard, grace: grace}
		if _, err := cmd.run(ctx, "go", append([]string{"list", "-e", "-export", "-test", "-race"}, packages...)...); err != nil {
			return err
		}
	}
	return nil
}
